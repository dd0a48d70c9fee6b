"""Stored runs are of today's code where that computes at scale smoke the same bytes."""

import hashlib
import json
import shutil

import pytest
from restamp import main, restamp

import runner
from runner.runs.provenance import code_of


@pytest.fixture
def folders(tmp_path):
    """A reference of one figure, the runs of its code, and the runs of today's code."""
    for seed in (0, 1):
        runner.run("example20", seed=seed, scale="smoke", outputs=tmp_path / "after", device="cpu")
    shutil.copytree(tmp_path / "after", tmp_path / "before")
    for path in (tmp_path / "before").rglob("provenance.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"code": "theirs"}))
    stored = [
        {"run": "example20 seed=7", "code": "theirs", "stale": True},
        {"run": "example20 seed=8", "code": "another", "stale": True},
    ]
    path = tmp_path / "reference" / "quick" / "fig" / "provenance.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"runs": stored, "stale": "of other code"}))
    return path, tmp_path / "before", tmp_path / "after"


def test_runs_of_the_same_bytes_are_of_todays_code(folders):
    path, before, after = folders
    found = restamp(path.parents[2], before, after)
    assert found == ["example20: the same bytes; 1 stored runs restamped"]
    about = json.loads(path.read_text())
    today = code_of("example20")
    first = {"run": "example20 seed=7", "code": today, "stale": False, "code_then": "theirs"}
    assert about["runs"][0] == first and about["runs"][1]["code"] == "another"
    assert about["stale"] == "of other code"  # because of the second run
    path.write_text(json.dumps(about | {"runs": about["runs"][:1]}))
    restamp(path.parents[2], before, after)
    assert json.loads(path.read_text()) == {"runs": [first], "stale": None}


def test_runs_that_the_pattern_names_remain_stale(folders):
    path, before, after = folders
    with_other_bytes(before, after)
    assert restamp(path.parents[2], before, after, "example20 .*seed=[18]") == [
        "example20: the same bytes; 1 stored runs restamped"
    ]
    path.write_text(path.read_text().replace(code_of("example20"), "theirs"))
    assert restamp(path.parents[2], before, after, "example20 .*seed=[17]") == [
        "example20: the same bytes; 0 stored runs restamped"
    ]


def with_other_bytes(before, after):
    path = next(before.rglob("*seed=1*/metrics.csv"))
    path.write_bytes(path.read_bytes().replace(b"8,", b"9,", 1))
    result = json.loads(path.with_name("result.json").read_text())
    result["tables"]["metrics"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name("result.json").write_text(json.dumps(result))


def with_a_run_less(before, after):
    shutil.rmtree(next(before.rglob("result.json")).parent)


def with_other_code_after(before, after):
    path = next(after.rglob("provenance.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"code": "theirs"}))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (with_other_bytes, "other bytes in seed="),
        (with_a_run_less, "only one code has computed seed="),
        (with_other_code_after, "not all runs after are of today's code"),
    ],
)
def test_runs_that_prove_nothing_leave_all_as_it_is(folders, change, reason):
    path, before, after = folders
    content = json.loads(path.read_text())
    change(before, after)
    (line,) = restamp(path.parents[2], before, after)
    assert reason in line and line.endswith("0 stored runs restamped")
    assert json.loads(path.read_text()) == content


def test_two_folders_are_needed(capsys):
    assert main(["one"]) == 2 and "before and after" in capsys.readouterr().err
