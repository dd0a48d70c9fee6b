"""The names of all figures' runs. A change of one would orphan kept runs, and those of users.

`python tests/test_run_names.py` writes the table anew, for a figure that is new or has new runs.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

from in_process import order_of
from repository import REPOSITORY

from runner.core.catalogue import SCALES, figure_names

TABLE = Path(__file__).with_name("run_names.txt")
FIGURES = sorted(path.stem for path in (REPOSITORY / "conf" / "figure").glob("*.yaml"))


def names_of(figure: str) -> list[str]:
    """`figure scale study/run` for each run of a figure, in order."""
    lines = []
    for scale in SCALES:
        if figure in figure_names(scale):
            (made,) = order_of(f"figure={figure}", f"scale={scale}").figures
            folders = sorted(run.folder.relative_to("outputs/runs") for run in made.runs)
            lines += [f"{figure} {scale} {folder}" for folder in folders]
    return lines


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_has_the_runs_that_it_had(figure, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    kept = [line for line in TABLE.read_text().splitlines() if line.startswith(f"{figure} ")]
    assert names_of(figure) == kept, (
        "a run has another name, and stored runs would be lost; if the figure or the run is new,"
        " write the table anew by python tests/test_run_names.py"
    )
    absent = set(SCALES) - {line.split()[1] for line in kept} - {"quick"}
    assert not absent, f"conf/figure/{figure}.yaml needs grids for {' and '.join(sorted(absent))}"


if __name__ == "__main__":
    TABLE.write_text("\n".join(line for figure in FIGURES for line in names_of(figure)) + "\n")
