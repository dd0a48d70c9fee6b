"""The notebooks run from their first cell to their last, at scale smoke."""

import pytest
from repository import REPOSITORY
from samples import samples

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

import notebooks  # noqa: E402

PAPERS = REPOSITORY / "src" / "runner" / "papers"
NOTEBOOKS = sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))
CHEAP = "norm_tuning"
"""The notebook that `make test` has."""


def test_every_paper_has_one_without_outputs():
    rooms = {path.parent.name for path in PAPERS.glob("*/theory.py")}
    assert {path.stem for path in NOTEBOOKS} == rooms and len(rooms) == 4
    for path in NOTEBOOKS:
        cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
        assert all(not cell.outputs and cell.execution_count is None for cell in cells), path


@pytest.mark.parametrize(
    "path",
    samples(NOTEBOOKS, lambda path: CHEAP if path.stem == CHEAP else None, lambda path: path.stem),
)
def test_it_runs_and_shows_figures_and_verdicts(path, tmp_path):
    """Its assertions hold, its own figure and the paper's are drawn, and claims are judged."""
    done = notebooks.execute(path, tmp_path, scale="smoke", jobs=1)
    outputs = [each for cell in done.cells for each in cell.get("outputs", [])]
    shown = [each["data"] for each in outputs if "data" in each]
    assert sum("image/png" in data for data in shown) >= 3
    judged = [data["text/html"] for data in shown if "verdict" in data.get("text/html", "")]
    assert judged and all("undecided" in html or "holds" in html for html in judged)
    assert not (tmp_path / "outputs").exists(), "runs are kept where OUTPUTS says"


@pytest.mark.parametrize("words", [["size=smoke"], ["jobs=two"], ["outputs="]])
def test_wrong_arguments_end_in_a_line(words, capsys):
    assert notebooks.main(words) == 2
    assert capsys.readouterr().err.startswith("error: ")
