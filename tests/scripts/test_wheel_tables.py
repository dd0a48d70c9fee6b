"""What of the tables is in the wheel: `scripts/wheel.py`."""

import pytest
import wheel
from repository import REPOSITORY

from runner.commands.kept import KeptFigure, read_tables
from runner.core.catalogue import figure_study
from runner.results.drawing import draw, drawing_of
from runner.results.rows import Present

KEPT = REPOSITORY / "outputs" / "reference" / "quick"
WITHOUT = sorted({path.parent for each in wheel.JUDGED_ALONE for path in KEPT.glob(each)})


def test_numbers_have_six_digits_and_all_else_is_as_it_was():
    table = b"run,x\nrate=0.123456789,-1.23456789e-07\nlayer=10,0.333333333333\na,2.5\n"
    assert wheel.short(table) == b"run,x\nrate=0.123456789,-1.23457e-07\nlayer=10,0.333333\na,2.5\n"


def test_every_pattern_leaves_something_out():
    assert all(list(KEPT.glob(pattern)) for pattern in wheel.JUDGED_ALONE)


@pytest.mark.parametrize("folder", WITHOUT, ids=lambda folder: folder.name)
def test_a_figure_needs_no_table_that_is_left_out(folder, monkeypatch):
    left_out = {path for each in wheel.JUDGED_ALONE for path in KEPT.glob(each)}
    names = {path.name.partition(".")[0] for path in left_out if path.parent == folder}
    tables = {name: rows for name, rows in read_tables(folder).items() if name not in names}
    monkeypatch.setattr(Present, "__missing__", lambda self, name: pytest.fail(name))
    draw(drawing_of(folder.name, figure_study(folder.name)), tables)
    KeptFigure.of(folder).header(tables)
