"""Draw the figure of study `small_copies`."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.results.curves import curves
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.looks import Name
from runner.results.rows import Tables, spread
from runner.results.style import BLUE, GREY, Look, level, name_ends, panel, sheet, ticks

LOOKS = {
    False: Name("untrained", Look(GREY, "o", hollow=True)),
    True: Name("trained", Look(BLUE, "o")),
}
"""Names and looks of networks before and after training."""

LAYERS = {1: "first", 2: "second", 3: "output"}
"""Names of the fully connected layers."""


def say_others(tables: Tables) -> str:
    """Return the headline of figure `what-others-saw`: how training changes the effective rank."""
    return (
        "Deep untrained networks have features of low effective rank already; training raises it"
        " at every depth"
    )


def draw_others(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `what-others-saw`: networks before and after training.

    - (a) the ratio ‖W‖₂² / ‖W‖² of the fully connected layers of a convolutional network;
    - (b) the effective rank of the last hidden layer of fully connected networks, by depth.

    Dots are networks, lines medians. Returns the picture, and a table with median and range.
    """
    picture, ((left, right),) = sheet(1, 2, height=4.2, left=0.75, right=1.0, gap=1.2, top=0.5)
    panel(left, "a", "ratio ‖W‖₂² / ‖W‖²", "fully connected layer behind convolutions")
    panel(right, "b", "effective rank of the last hidden layer", "number of layers (log axis)")
    left.set(xlim=(0.6, 3.4), ylim=(0, 1.09))
    level(left, 1, "bound of Eq. (14)")
    right.set_xscale("log")
    drawn = [
        _panel(left, tables, "layers", "layer", "ratio", linestyle=""),
        _panel(right, tables, "features", "depth", "effective_rank"),
    ]
    ticks(left.xaxis, list(LAYERS), list(LAYERS.values()))
    return picture, pd.concat(drawn)


def _panel(axes: Axes, tables: Tables, table: str, x: str, y: str, **options: Any) -> pd.DataFrame:
    """Draw a column of a table, and return its median and range. options: for `Look.line`."""
    numbers = pd.DataFrame()
    with or_empty(axes):
        rows = tables[table]
        ends = curves(axes, rows, x, y, "trained", LOOKS.__getitem__, replicates="dots", **options)
        axes.set_ylim(bottom=0)
        name_ends(axes, ends)
        ticks(axes.xaxis, sorted(set(rows[x])))
        numbers = spread(rows, ["trained", x], [y]).assign(measure=y)
    return numbers.rename(columns=lambda name: name.replace(y, "value"))


overview = draw_others

HEADLINE = ["ratio", "effective_rank"]

FIGURES = [
    Drawing(
        "what-others-saw",
        draw_others,
        whose="our experiment",
        marks="dots: networks, lines: medians",
        findings=[Finding(say_others, holds=["untrained-rank-falls", "training-raises-rank"])],
        caption="(a) shows the largest squared singular value of each layer, divided by the sum"
        " of all, in networks of two convolutions and three fully connected ReLU layers that"
        " learn ten classes. (b) shows the effective rank exp(−Σ p log p) of the activations of"
        " fully connected ReLU networks that learn ten classes with the squared loss; p are the"
        " squared singular values, divided by their sum.",
    ),
]
