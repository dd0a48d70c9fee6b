"""Each number that a picture of paper C says is one of the numbers that it draws."""

import re

import numpy as np
import pytest
from in_memory import kept_tables

from runner.core.catalogue import figure_study
from runner.results.drawing import draw, drawing_of
from runner.results.style import QUIET


def said_and_drawn(figure):
    """Return the numbers of a kept figure's finding, its picture and the numbers drawn."""
    tables = kept_tables(figure, "paper")
    drawing = drawing_of(figure, figure_study(figure))
    said = drawing.findings[0].says(tables)
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", said)]
    return numbers, *draw(drawing, tables)


def powers(axes):
    """Return the powers that are written at lines."""
    texts = " ".join(text.get_text() for text in axes.texts)
    written = re.findall(r"(?:power |\\log t\)\^\{)(−?\d\.\d+)", texts)
    return sorted(float(each.replace("−", "-")) for each in written)


def slope(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def test_the_drift_of_relu_layers_is_that_at_the_end_of_the_band():
    numbers, _, drawn = said_and_drawn("conserved")
    relu = drawn[drawn["statement"].str.startswith("ReLU")].sort_values("time")
    end = relu[relu["learning_rate"] == relu["learning_rate"].min()].iloc[-1]
    assert numbers == [round(100 * end[0.05]), round(100 * end[0.95])]


def test_the_power_at_a_line_is_its_own_slope():
    _, picture, drawn = said_and_drawn("what-grows")
    drawn = drawn[drawn["panel"] == "growth"]
    late = drawn[drawn["time"] >= 0.5 * drawn["time"].max()]
    lines = late.groupby("architecture")
    slopes = [slope(line["log10_time"], line["top"]) for _, line in lines]
    assert powers(picture.axes[0]) == sorted(round(each, 2) for each in slopes)
    dotted = [
        line
        for line in picture.axes[0].lines
        if line.get_color() == QUIET.color and len(line.get_xdata())
    ]
    laws = sorted(slope(*line.get_data()) for line in dotted)
    assert laws == pytest.approx([2 / 9, 2 / 6])  # three of six layers are free blocks, or none


def test_the_ratio_from_gain_one_is_where_its_line_begins_and_ends():
    numbers, _, drawn = said_and_drawn("low-rank-training")
    line = drawn[(drawn["panel"] == "ratio_by_epoch") & (drawn["gain"] == 1)]
    line = line.sort_values("epoch")["median"]
    assert numbers == [round(100 * line.iloc[0]), round(100 * line.iloc[-1])]
