"""Draw the figure of study `rank_gradients`."""

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.batch_norm_rank.names import NAMES
from runner.papers.batch_norm_rank.rank_gradients.tables import networks
from runner.results.curves import End, curves
from runner.results.drawing import Drawing, Finding
from runner.results.looks import Name
from runner.results.rows import Tables, select, spread
from runner.results.style import (
    QUIET,
    SMALL,
    guide,
    hollow_look,
    name_ends,
    panel,
    sheet,
    ticks,
)

NETWORKS = NAMES["network"]
"""Names and looks of the networks in the paper's figure. All others have hollow markers."""

DRAWN_BY = ("network",)


def _lines(axes: Axes, drawn: pd.DataFrame, x: str, column: str) -> list[End]:
    """Draw medians and ranges of each network; return the ends of the lines.

    x, column: columns on the x-axis and on the y-axis.
    """
    others = [name for name in drawn["network"].unique() if name not in NETWORKS]
    short = {name: fill(name.removesuffix(" weights"), 17) for name in others}
    known = {name: Name(short[name], hollow_look(index)) for index, name in enumerate(others)}
    known |= NETWORKS
    options: Any = {"replicates": "range", "first": sorted(known, reverse=True)}  # green lies below
    return curves(axes, drawn, x, column, "network", known.__getitem__, **options)


def draw_gradients(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw growth of gradients and r by depth, and the orthogonality gap by width.

    Depths are compared at the width that equals the batch size N, or at the largest width if no
    network has this width. Widths are compared at the largest depth.
    Lines are medians, bands the range. Returns the picture, and a table with median and range for
    each network, width and depth.
    """
    from runner.papers.batch_norm_rank.theory import RELU_GRADIENT_GROWTH  # late import of torch

    keys = ["network", "d", "L", "N"]
    drawn = spread(networks(tables).sort_values(keys), keys, ["ratio", "rank_bound", "gap"])
    has_square = (drawn["d"] == drawn["N"]).any()
    width = drawn["N"].max() if has_square else drawn["d"].max()
    compared = drawn[drawn["d"] == (drawn["N"] if has_square else width)]
    deepest = drawn[drawn["L"] == drawn["L"].max()]
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.62, right=1.55)
    for axes, column in ((left, "ratio"), (middle, "rank_bound")):
        axes.set_yscale("log")
        _lines(axes, compared, "L", column)
    depths = np.arange(1, drawn["L"].max())
    guide(left, depths, RELU_GRADIENT_GROWTH ** (depths - 1))
    theory = {"ha": "right", "textcoords": "offset points", "xytext": (7, -96), "size": SMALL}
    end = RELU_GRADIENT_GROWTH ** (depths[-1] - 1)
    words = f"theory:\n× {RELU_GRADIENT_GROWTH:.2f}"
    QUIET.name(left, depths[-1] + 1, end, words, **theory)
    batch = compared[compared["network"] == "ReLU, batch norm"]
    for axes, column, text in (
        (left, "ratio", lambda value, L: f"× {value ** (1 / max(1, L - 1)):.2f}\nper layer"),
        (middle, "rank_bound", lambda value, _: f"{value:.1f}"),
    ):
        for L, value in batch.tail(1)[["L", column]].itertuples(index=False):
            away: Any = {"textcoords": "offset points", "ha": "right"}
            away |= {"xytext": (7, -82) if axes is left else (3, -14), "size": SMALL}
            NETWORKS["ReLU, batch norm"].look.name(axes, L, value, text(value, L), **away)
    ticks(middle.yaxis, [2**k for k in range(16) if 2**k <= drawn["N"].max()])
    right.set(xscale="log", ylim=(0, 1.05))
    ticks(right.xaxis, sorted(deepest["d"].unique()))
    name_ends(right, _lines(right, deepest, "d", "gap"))
    QUIET.note(right, 0.04, 0.8, "0: samples are\northogonal")
    depth = f"depth L (width {width})"
    panel(left, "a", "first / last gradient", depth)
    panel(middle, "b", "r of the last layer", depth)
    panel(right, "c", f"orthogonality gap, L = {drawn['L'].max()}", "width d")
    return picture, drawn


def say_cost(tables: Tables) -> str:
    """Return the headline: r of ReLU networks with and without batch norm, and their gradients.

    Its numbers are medians over the deepest networks with batch norm, as wide as the batch size:
    r of the last layer, and the growth of gradients per layer. Raises NoRows if there are no such
    networks.
    """
    rows = select(networks(tables), network="ReLU, batch norm").query("d == N and L == L.max()")
    growth = (rows["ratio"] ** (1 / (rows["L"] - 1))).median()
    return (
        f"With ReLU batch norm keeps r at {rows['rank_bound'].median():.1f}, but gradients grow"
        f" {growth:.2f}-fold per layer; without it r falls to 1"
    )


overview = draw_gradients

HEADLINE = ["first_gradient", "last_gradient", "matrix_rank", "rank_bound"]

FIGURES = [
    Drawing(
        "rank-gradients",
        draw_gradients,
        whose="our experiment",
        findings=[
            Finding(
                say_cost,
                holds=["relu-gradients-explode", "plain-keeps-gradients-loses-rank"],
            )
        ],
        marks="lines: medians, bands: range, r: lower bound of the rank",
        caption="(a) shows the gradient norm of the first hidden layer, divided by the norm of the"
        " last. The dotted line grows by a factor of √(π / (π − 1)) for each layer. (b) shows r, a"
        " lower bound of the rank, of the last layer. In both, the width is the number of samples."
        " (c) shows the orthogonality gap of the last layer at the largest depth, which is 0 for"
        " orthogonal samples. Lines are medians, bands the range.",
    ),
]
