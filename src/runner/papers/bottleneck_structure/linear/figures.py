"""Drawing of study `linear`, which is its preview as well."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck_structure.linear.tables import REMAINDERS, with_remainders
from runner.papers.bottleneck_structure.looks import rank_look
from runner.results import style
from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.spreads import spread
from runner.results.style import BLUE, DASHED, INK, NAVY, SKY, Look

ORDERS = (Look(SKY, "o"), Look(BLUE, "s", DASHED), Look(NAVY, "^"))
"""Of the expansion in 1/L: the more terms, the darker."""

NAMES = ("rank: L k", "+ 2 log |A|₊", "+ 1/L term")
"""The terms that are taken off, each with those before it."""


def say_attained(tables: Tables) -> str:
    """Say how near trained networks come to the least cost, and what two terms leave."""
    metrics = with_remainders(tables["metrics"])
    deepest = metrics[metrics["depth"] == metrics["depth"].max()]
    left = deepest["after_second"].median() / deepest["parameter_norm"].median()
    worst = metrics["excess"].max()
    return (
        f"Trained deep linear networks cost what the formula says, to within {100 * worst:.0e} %;"
        f" rank and log |A|₊ with the term in 1/L leave {100 * left:.2g} % at depth"
        f" {deepest['depth'].iloc[0]}"
    )


def draw_linear(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Left: ||theta||^2 against the cost. Right: what each order of the expansion leaves of it."""
    metrics = with_remainders(tables["metrics"])
    picture, ((left, right),) = style.sheet(gap=1.0, right=1.3)
    _norms(left, metrics)
    right.set(xscale="log", yscale="log")
    drawn = spread(metrics, ["depth"], REMAINDERS).sort_values("depth")
    depths = drawn["depth"].tolist()
    right.set_xlim(0.9 * depths[0], 1.1 * max(depths[-1], depths[0] + 1))
    ends = []
    for look, column, text in zip(ORDERS, REMAINDERS, NAMES, strict=True):
        look.band(right, drawn["depth"], drawn[f"{column}_low"], drawn[f"{column}_high"])
        look.line(right, drawn["depth"], drawn[column])
        ends.append((drawn[column].iloc[-1], text, look))
    style.ticks(right.xaxis, depths)
    shown = drawn[list(REMAINDERS)].to_numpy()
    right.set_ylim(0.1 * np.nanmin(shown[shown > 0], initial=1), None)  # single ones may be exact
    style.name_ends(right, [end for end in ends if end[0] > 0])
    style.panel(left, "a", "squared norm after training", "depth L")
    style.panel(right, "b", "left of it after subtracting", "depth L")
    return picture, metrics


def _norms(axes: Axes, metrics: pd.DataFrame) -> None:
    """The norms of every network by the rank it ends at, each in the circle of its cost."""
    depths = np.array(sorted(metrics["depth"].unique()), float)
    axes.set_xlim(0, 1.16 * depths[-1])
    circle = Look(INK, "o", "", hollow=True)
    size = {"markersize": 9, "markeredgewidth": 0.9}
    circle.line(axes, metrics["depth"], metrics["representation_cost"], zorder=2, **size)
    for k, rows in metrics.groupby("rank"):
        look = rank_look(k)
        axes.plot(depths, k * depths, color="none")  # so that the axes reach it
        style.guide(axes, depths, k * depths)
        options = {"linestyle": "", "markersize": 5, "markeredgewidth": 0.3, "zorder": 3}
        look.line(axes, rows["depth"], rows["parameter_norm"], **options)
        own = rows.groupby("depth")["parameter_norm"].max()
        look.name_at(axes, own.index, own, f"k = {k}", own.index[-1], away=(8, 0))
    axes.set_ylim(0, None)


HEADLINE = ["parameter_norm", "representation_cost", "rank", "train_cost"]

FIGURES = [
    Drawing(
        "bottleneck-linear",
        draw_linear,
        whose="ours",
        findings=[
            Finding(say_attained, holds=["cost-is-attained", "cost-is-least", "second-correction"])
        ],
        caption="(a) Squared norm of the parameters of trained deep linear networks against the"
        " depth L, every replicate, by the rank k that they end at; circles around the dots: the"
        " representation cost L ‖A‖^(2/L) of the same matrices (Schatten norm of order 2/L);"
        " dotted: k L. (b) What the orders of the expansion in 1/L leave of the squared norm:"
        " after the rank, after 2 log |A|₊ as well, and after the term in 1/L as well. Lines are"
        " medians over the replicates, bands their whole range. Targets are random matrices of"
        " singular values between 1 and 3.",
    ),
]

overview = draw_linear
