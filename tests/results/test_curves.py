"""Curves: which lines, dots and bands a table is drawn as."""

import numpy as np
import pandas as pd
import pytest

from runner.results.curves import curves, diverged_apart
from runner.results.looks import Look, Name
from runner.results.rows import spread
from runner.results.style import sheet

NAMES = {"a": Name("first", Look("#0072B2")), "b": Name("second"), "c": Name("third")}

ROWS = pd.DataFrame(
    [(s, x, r, 10 * x + r**2) for s in "abc" for x in (2, 1) for r in (0, 1, 3)],
    columns=["series", "x", "replicate", "y"],
)


def drawn(rows=ROWS, series="series", named=NAMES.__getitem__, **options):
    """Draw the rows into new axes; return the axes and the ends of the lines."""
    _, ((axes,),) = sheet(1, 1)
    return axes, curves(axes, rows, "x", "y", series, named, **options)


@pytest.mark.parametrize(
    ("statistic", "heights"), [("median", [11, 21]), ("mean", [40 / 3, 70 / 3])]
)
def test_a_line_is_a_statistic_of_the_replicates_by_x(statistic, heights):
    axes, ends = drawn(statistic=statistic)
    for line in axes.lines:
        assert line.get_xdata().tolist() == [1, 2]
        assert line.get_ydata().tolist() == pytest.approx(heights)
    assert [text for _, text, _ in ends] == ["first", "second", "third"]
    assert [height for height, *_ in ends] == pytest.approx([heights[-1]] * 3)


def test_lines_that_are_drawn_first_are_below_and_all_others_follow():
    axes, ends = drawn(ROWS[ROWS["series"] != "a"], first=["a", "c"])
    assert [line.get_label() for line in axes.lines] == ["third", "second"]
    assert [text for _, text, _ in ends] == ["third", "second"]
    backwards = drawn(ROWS[::-1], sort=False)[0]
    assert [line.get_label() for line in backwards.lines] == ["third", "second", "first"]


def test_dots_are_every_number():
    axes, _ = drawn(ROWS[ROWS["series"] == "a"], replicates="dots", alpha=0.8)
    dots, line = axes.lines
    assert sorted(dots.get_ydata()) == sorted(ROWS.loc[ROWS["series"] == "a", "y"])
    assert (dots.get_alpha(), len(line.get_ydata())) == (0.8, 2)


def test_a_band_is_the_range_of_replicates_or_that_of_a_table_of_medians_and_ranges():
    ends = []
    for rows in (ROWS, spread(ROWS, ["series", "x"], ["y"])):
        axes, _ = drawn(rows, replicates="range")
        ends.append([band.get_paths()[0].get_extents().extents for band in axes.collections])
    assert np.array_equal(*ends)
    assert ends[0][0].tolist() == [1, 10, 2, 29]


def test_a_series_of_several_columns_has_tuples_and_heights_are_changed():
    keys = []

    def named(key):
        keys.append(key)
        return Name(str(key))

    axes, ends = drawn(ROWS, ["series", "replicate"], named, height=lambda values: 2 * values)
    assert keys == [(s, r) for s in "abc" for r in (0, 1, 3)]
    assert [height for height, *_ in ends][:3] == [40, 42, 58]


def test_numbers_that_are_nan_are_in_a_strip_above_the_axis_and_are_named():
    _, ((axes,),) = sheet(1, 1)
    rows = ROWS.assign(y=ROWS["y"].mask(ROWS["series"] == "b"))
    height = diverged_apart(axes, rows["y"])
    ends = curves(axes, rows, "x", "y", "series", NAMES.__getitem__, height=height)
    top = rows["y"].max()
    heights = {text: height for height, text, _ in ends}
    assert heights["second"] > top >= max(heights["first"], heights["third"])
    assert max(axes.get_yticks()) <= top
    assert "NaN" in [text.get_text() for text in axes.texts]


def test_finite_numbers_need_no_strip():
    _, ((axes,),) = sheet(1, 1)
    limits = axes.get_ylim()
    assert diverged_apart(axes, ROWS["y"])(5.0) == 5
    assert axes.get_ylim() == limits
