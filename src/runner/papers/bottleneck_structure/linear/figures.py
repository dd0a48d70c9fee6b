"""Draw the figure of study `linear`, which is also its preview."""

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck_structure.linear.tables import REMAINDERS, with_remainders
from runner.papers.bottleneck_structure.looks import rank_look
from runner.results import style
from runner.results.drawing import Drawing, Finding
from runner.results.rows import Tables, nonempty, spread
from runner.results.style import BLUE, DASHED, INK, NAVY, QUIET, SKY, Look

ORDERS = (Look(SKY, "o"), Look(BLUE, "s", DASHED), Look(NAVY, "^"))
"""Looks of the residuals of the expansion in 1/L, darker for more terms."""

NAMES = ("L k", "and 2 log |A|₊", "and the 1/L term")
"""Names of the terms that are subtracted, each in addition to the previous terms."""


CIRCLE = Look(INK, "o", "", hollow=True)
"""Look of the formula."""

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
"""Table that replaces characters by their superscripts."""


def say_attained(tables: Tables) -> str:
    """Return the headline: trained networks have the squared norm of the formula.

    Its number is a power of ten above all relative differences.
    """
    return (
        "Trained deep linear networks have exactly the squared norm of the formula (relative"
        f" difference below {_worst(with_remainders(tables['metrics']))})"
    )


def _worst(metrics: pd.DataFrame) -> str:
    """Return as text the power of ten above all relative differences from the formula."""
    worst = metrics["off_formula"].max()
    power = np.ceil(np.log10(worst)) if worst > 0 else -np.inf
    return f"10{f'{power:.0f}'.translate(RAISED)}"


def draw_linear(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the squared norm of trained deep linear networks; return the picture and its table.

    Panel (a) shows ||theta||^2 by depth L, with the formula L ||A||_{2/L}^{2/L}. Panel (b) shows
    the residual of ||theta||^2 after subtracting one, two and three terms of its expansion in 1/L.
    The table is `metrics` with the columns of `with_remainders`. Raises NoRows if all networks are
    zero.
    """
    metrics = with_remainders(tables["metrics"])
    picture, ((left, right),) = style.sheet(gap=1.25, right=1.55)
    _norms(left, metrics)
    formula = rf"formula $L\,\|A\|_{{2/L}}^{{2/L}}$ (within {_worst(metrics)})"
    marks = {"trained network": rank_look(2), formula: CIRCLE, "k L": QUIET}
    marks["trained network"] = replace(rank_look(2), dashes="", size=5)
    style.key(left, marks, loc="upper left", bbox_to_anchor=(-0.02, 1.02))
    words = "A: product of all W\n|A|₊: product of\nits σ > 0"
    QUIET.note(right, 0.03, 0.03, words, va="bottom")
    right.set(xscale="log", yscale="log")
    alive = nonempty(metrics[metrics["rank"] > 0], "network that is not zero")
    drawn = spread(alive, ["depth"], REMAINDERS).sort_values("depth")
    depths = drawn["depth"].tolist()
    right.set_xlim(0.9 * depths[0], 1.1 * max(depths[-1], depths[0] + 1))
    ends = []
    for look, column, text in zip(ORDERS, REMAINDERS, NAMES, strict=True):
        look.band(right, drawn["depth"], drawn[f"{column}_low"], drawn[f"{column}_high"])
        look.line(right, drawn["depth"], drawn[column])
        ends.append((drawn[column].iloc[-1], text, look))
    style.ticks(right.xaxis, depths)
    shown = drawn[list(REMAINDERS)].to_numpy()
    right.set_ylim(0.1 * np.nanmin(shown[shown > 0], initial=1), None)  # some may be exactly zero
    style.name_ends(right, [end for end in ends if end[0] > 0])
    style.panel(left, "a", "squared norm ‖θ‖²", "depth L")
    style.panel(right, "b", "rest of ‖θ‖² after subtracting", "depth L")
    return picture, metrics


def _norms(axes: Axes, metrics: pd.DataFrame) -> None:
    """Draw the norm of every network by its rank after training, inside a circle at the formula."""
    depths = np.array(sorted(metrics["depth"].unique()), float)
    axes.set_xlim(0, 1.3 * depths[-1])
    size = {"markersize": 9, "markeredgewidth": 0.9}
    CIRCLE.line(axes, metrics["depth"], metrics["representation_cost"], zorder=2, **size)
    for k, rows in metrics.groupby("rank"):
        look = rank_look(k)
        axes.plot(depths, k * depths, color="none")  # to include it in the limits of the axis
        style.guide(axes, depths, k * depths)
        options = {"linestyle": "", "markersize": 5, "markeredgewidth": 0.3, "zorder": 3}
        look.line(axes, rows["depth"], rows["parameter_norm"], **options)
        norms = rows.groupby("depth")["parameter_norm"].max()
        away = (9, 3 if k else 5)
        look.name_at(axes, norms.index, norms, f"rank k = {k}", norms.index[-1], away=away)
    if np.isfinite(top := metrics["parameter_norm"].max()):
        axes.set_ylim(-0.05 * top, 1.3 * top)


HEADLINE = ["parameter_norm", "representation_cost", "rank", "train_cost"]

FIGURES = [
    Drawing(
        "bottleneck-linear",
        draw_linear,
        whose="our experiment",
        findings=[Finding(say_attained, holds=["cost-is-attained", "cost-is-least"])],
        marks="lines: medians, bands: range",
        caption="(a) shows the squared norm of trained linear networks (filled) and the formula"
        " L ‖A‖^(2/L) (circles; Schatten norm of order 2/L), against the depth L. A is the"
        " product of the matrices, k is its rank, and |A|₊ is the product of its nonzero"
        " singular values. (b) shows the residual after each term of the expansion in 1/L,"
        " without zero networks. Lines are medians, bands the range.",
    ),
]

overview = draw_linear
