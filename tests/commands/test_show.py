"""`runner show`: a figure of the reference at once, and clear words where there is none."""

import subprocess
import sys

import pandas as pd
import pytest
from repository import REPOSITORY

from runner.commands import show
from runner.commands.show import describe, kept_scales, list_figures, main
from runner.core.catalogue import figure_names
from runner.core.errors import InputError
from runner.runs.provenance import REFERENCE

LIGHT = """
import sys
from pathlib import Path
from runner.commands.show import describe
describe("fig4", None, Path(sys.argv[1]))
print(*sorted({"torch", "numba", "sklearn"} & set(sys.modules)))
"""


def test_a_figure_is_shown_with_its_verdicts_and_its_picture(tmp_path, capsys):
    assert main(["bottleneck-example20", f"outputs={tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert "✓ holds" in said and "paper D, Example 20" in said
    path = tmp_path / "figures-from-reference" / "paper" / "bottleneck-example20.png"
    assert said.splitlines()[-1] == str(path) and path.read_bytes().startswith(b"\x89PNG")


def test_the_largest_scale_is_shown_and_the_others_are_named(tmp_path):
    """As the gallery counts them: at scale quick both claims of this figure hold."""
    said = describe("rank-pretraining", None, tmp_path).splitlines()
    assert said[0].startswith("rank-pretraining, scale=paper (the largest kept): ")
    judged = pd.read_csv(REFERENCE / "paper" / "rank-pretraining" / "claims.csv")
    verdicts = [line.split()[1] for line in said if line[:1] in "✓✗?"]
    assert sorted(verdicts) == sorted(judged["verdict"])
    others = [line for line in said if line.startswith("also kept: ")]
    command = "also kept: runner show rank-pretraining scale="
    assert others == [f"{command}medium", f"{command}quick"]
    small = describe("rank-pretraining", "quick", tmp_path).splitlines()
    assert small[0].startswith("rank-pretraining, scale=quick: ")
    assert f"{command}paper" in small


def test_a_wheel_shows_quick_and_says_where_the_others_are(tmp_path, monkeypatch):
    (tmp_path / "quick").symlink_to(REFERENCE / "quick")
    monkeypatch.setattr(show, "REFERENCE", tmp_path)
    monkeypatch.setattr(show, "INSTALLED", True)
    said = describe("bottleneck-example20", None, tmp_path / "outputs").splitlines()
    assert said[0].startswith("bottleneck-example20, scale=quick: ")
    assert said[-2] == show.ELSEWHERE


@pytest.mark.parametrize(
    ("name", "scale", "message"),
    [
        ("fig44", None, "fig44 is no figure: did you mean 'fig4'"),
        ("rank-fig13", "paper", "scale=medium, scale=quick. To compute it: runner figure"),
    ],
)
def test_what_is_not_there_is_said_with_what_to_type(name, scale, message, tmp_path):
    with pytest.raises(InputError, match=message):
        describe(name, scale, tmp_path)


def test_every_figure_that_is_kept_is_listed():
    listed = {line.split()[0] for line in list_figures().splitlines()}
    assert listed - {"To"} == {name for name in figure_names() if kept_scales(name)}


def test_it_imports_no_torch(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, tmp_path],
        env={"PYTHONPATH": str(REPOSITORY / "src"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
