"""`runner show`: a figure of the reference at once, and clear words where there is none."""

import subprocess
import sys

import pytest
from repository import REPOSITORY

from runner.core.catalogue import figure_names
from runner.core.errors import InputError
from runner.publish.show import kept_scales, listed, main, shown

LIGHT = """
import sys
from pathlib import Path
from runner.publish.show import shown
shown("fig4", None, Path(sys.argv[1]))
print(*sorted({"torch", "numba", "sklearn"} & set(sys.modules)))
"""


def test_a_figure_is_shown_with_its_verdicts_and_its_picture(tmp_path, capsys):
    assert main(["bottleneck-example20", f"outputs={tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert "✓ holds" in said and "paper D, Example 20" in said
    assert "runner show bottleneck-example20 scale=paper" in said
    path = tmp_path / "figures-from-reference" / "quick" / "bottleneck-example20.png"
    assert said.splitlines()[-1] == str(path) and path.read_bytes().startswith(b"\x89PNG")


def test_every_figure_that_is_kept_is_listed():
    lines = listed().splitlines()
    for name in figure_names():
        assert any(line.split()[0] == name for line in lines) == bool(kept_scales(name))


def test_what_is_not_there_is_said_with_what_to_type(tmp_path):
    with pytest.raises(InputError, match="fig44 is no figure: did you mean 'fig4'"):
        shown("fig44", None, tmp_path)
    with pytest.raises(InputError, match="scale=quick, scale=medium. To compute it: runner figure"):
        shown("rank-fig13", "paper", tmp_path)


def test_it_imports_no_torch(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, tmp_path],
        env={"PYTHONPATH": str(REPOSITORY / "src"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
