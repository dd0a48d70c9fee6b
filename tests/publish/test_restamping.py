"""Kept runs are of today's code where that computes at scale smoke what theirs did."""

import hashlib
import json
import shutil

import pandas as pd
import pytest

import runner
from runner.core.errors import InputError
from runner.publish.restamping import restamp
from runner.runs.provenance import code_of


@pytest.fixture
def folders(tmp_path):
    """A reference of one figure, the runs of its code, and those of today's."""
    for seed in (0, 1):
        runner.run("example20", seed=seed, scale="smoke", outputs=tmp_path / "after", device="cpu")
    shutil.copytree(tmp_path / "after", tmp_path / "before")
    for path in (tmp_path / "before").rglob("provenance.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"code": "theirs"}))
    kept = [
        {"run": "example20 seed=7", "code": "theirs", "stale": True},
        {"run": "example20 seed=8", "code": "another", "stale": True},
        {"run": "linear", "code": "theirs", "stale": True},
    ]
    place = tmp_path / "reference" / "quick" / "fig" / "provenance.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"runs": kept}))
    return place, tmp_path / "before", tmp_path / "after"


def restamped(folders):
    """What is said of the study, and the runs as they are kept now."""
    place, before, after = folders
    said = [line for line in restamp(place.parents[2], [before], after) if "example20:" in line]
    return said, json.loads(place.read_text())["runs"]


def test_runs_of_the_same_bytes_are_of_todays_code(folders):
    said, (first, other, linear) = restamped(folders)
    assert said == ["example20: the same bytes; 1 kept runs restamped"]
    assert (first["code"], first["code_then"]) == (code_of("example20"), "theirs")
    assert first["stale"] is False
    assert other["code"] == "another" and linear["code"] == "theirs"


@pytest.mark.parametrize(("kept", "note"), [(1, None), (2, "of other code")])
def test_a_figure_is_of_other_code_as_long_as_one_of_its_runs_is(folders, kept, note):
    place = folders[0]
    runs = json.loads(place.read_text())["runs"][:kept]
    place.write_text(json.dumps({"runs": runs, "stale": "of other code"}))
    restamped(folders)
    assert json.loads(place.read_text())["stale"] == note


def test_other_bytes_leave_all_as_it_is_and_are_told(folders):
    path = next(folders[1].rglob("metrics.csv"))
    rows = pd.read_csv(path)
    content = rows.assign(max_error=rows["max_error"] + 1).to_csv(index=False).encode()
    path.write_bytes(content)
    result = json.loads(path.with_name("result.json").read_text())
    result["tables"]["metrics"] |= {"sha256": hashlib.sha256(content).hexdigest()}
    path.with_name("result.json").write_text(json.dumps(result))
    said, runs = restamped(folders)
    assert said[0].startswith("example20: other bytes in ") and "0 kept runs" in said[0]
    assert "1 columns differ by more than chance (most: 1e+03 of what chance explains" in said[0]
    assert [run["code"] for run in runs] == ["theirs", "another", "theirs"]


def test_a_run_that_only_one_code_has_computed_proves_nothing(folders):
    shutil.rmtree(next(folders[1].rglob("result.json")).parent)
    said, _ = restamped(folders)
    assert "no run before to compare with" in said[0] and "0 kept runs" in said[0]


def test_runs_after_must_be_of_todays_code(folders):
    path = next(folders[2].rglob("provenance.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"code": "theirs"}))
    with pytest.raises(InputError, match="not all runs of example20 are of today's code"):
        restamped(folders)


def test_a_study_stands_in_one_folder_of_before(folders):
    place, before, after = folders
    with pytest.raises(InputError, match="example20 is in another folder, too"):
        list(restamp(place.parents[2], [before, before], after))
