"""Draw the figure of study `stability`, which is also its preview."""

from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.rows import Tables, nonempty, select
from runner.results.style import (
    BLUE,
    DASHED,
    GREY,
    INK,
    QUIET,
    SKY,
    Look,
    guide,
    name_ends,
    panel,
    shades,
    sheet,
    ticks,
)

BEFORE = Look(GREY, "o", DASHED, hollow=True)
MARKERS = {"o": "●", "s": "■", "D": "◆", "^": "▲", "v": "▼"}
"""Markers of the lines, with their signs in the names of the lines."""


def _fitting(tables: Tables) -> pd.DataFrame:
    """Return the networks that fit figure 1's task, with a column `kernel`, Tr Θ / L.

    Raises NoRows if no network fits.
    """
    rows = select(tables["metrics"], task="figure-1").query("train_cost < 0.1")
    rows = nonempty(rows, "networks that fit figure 1's task")
    return rows.assign(kernel=rows["ntk_trace"] / rows["depth"])


def say_bounded(tables: Tables) -> str:
    """Return the headline: the median Tr Θ / L before gradient descent, and at the largest rate.

    The networks fit figure 1's task. Raises NoRows if no network fits.
    """
    rows = _fitting(tables)
    by = rows.groupby("rate")["kernel"].median()
    rate = by.index[-1]
    return (
        "Larger learning rates c/L force a smaller tangent kernel: at depths"
        f" {rows['depth'].min()} to {rows['depth'].max()} Tr Θ / L falls from {by.iloc[0]:.0f} to"
        f" {by[rate]:.0f} (c = {rate:g})"
    )


def _lines(axes: Axes, rows: pd.DataFrame, x: str, y: str) -> None:
    """Draw medians of a column divided by L, a line for each depth or each rate.

    x: "rate" or "depth", on the x-axis; the other one has the lines. y: the column.
    """
    other = {"rate": "depth", "depth": "rate"}[x]
    rows = rows.assign(height=rows[y] / rows["depth"])
    rows = rows[np.isfinite(rows["height"]) & (rows["height"] > 0)]
    colors, ends = shades(sorted({*rows[other]} - {0}), SKY, BLUE, INK), []
    markers = dict(zip(colors, cycle(MARKERS.items()), strict=False))
    for value, networks in rows.groupby(other):
        marker, sign = markers.get(value, ("o", ""))
        look = Look(colors[value], marker) if value else BEFORE
        median = networks.groupby(x)["height"].median()
        look.line(axes, median.index, median)
        name = f"{sign} { {'depth': 'L', 'rate': 'c'}[other] } = {value:g}" if value else "before"
        ends.append((median.iloc[-1], name, look))
    axes.set_yscale("log")
    name_ends(axes, ends)


def draw_rates(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the curvature by rate on figure 1's task (a), and the kernel by depth in Example 20 (b).

    Curvature and tangent kernel are divided by L. Lines are medians. Returns the picture and the
    table `metrics`.
    """
    metrics = tables["metrics"]
    picture, ((left, right),) = sheet(gap=1.3, right=1.1)
    rates = np.array(sorted({*metrics["rate"]} - {0}))
    first = rates[0] / 2.2  # place of the networks before gradient descent
    places = metrics["rate"].replace(0, first)
    with or_empty(left):
        fitting = metrics.assign(rate=places).query("train_cost < 0.1")
        _lines(left, select(fitting, task="figure-1"), "rate", "curvature")
        left.set(xscale="log", xlim=(first / 1.3, 1.3 * rates[-1]))
        apart = rates[np.append(rates[1:] > 1.4 * rates[:-1], True)]  # labels would overlap
        ticks(left.xaxis, [first, *apart], ["before", *map("{:g}".format, apart)])
        guide(left, rates, 2 / rates)
        QUIET.name_at(left, rates, 2 / rates, "edge: 2/c", rates[-2], (10, 4), ha="left")
        by = _fitting(tables).groupby("rate")["kernel"].median()
        if 0 in by.index and len(by) > 1:
            words = f"{by[0]:.0f} before,\n{by.iloc[-1]:.0f} at c = {by.index[-1]:g}"
            QUIET.note(left, 0.04, 0.03, f"median Tr Θ / L:\n{words}", va="bottom")
    with or_empty(right):
        rows = select(metrics, task="example-20")
        _lines(right, rows, "depth", "ntk_trace")
        ticks(right.xaxis, sorted(rows["depth"].unique()))
    panel(left, "a", "figure 1's task: curvature / L", "c of the learning rate c/L")
    panel(right, "b", "Example 20: Tr Θ / L", "depth L")
    return picture, metrics


HEADLINE = ["train_cost", "ntk_trace", "curvature", "distance"]

FIGURES = [
    Drawing(
        "bottleneck-rates",
        draw_rates,
        whose="supplementary",
        marks="lines: medians; not drawn: no fit, zero networks",
        findings=[Finding(say_bounded, holds=["large-rate-small-kernel"])],
        caption="Gradient descent with learning rate c/L begins from trained networks of figure"
        " 1's task (a) and from networks of Example 20 (b). (a) shows the curvature 2 ‖Θ(X, X)‖"
        " / N, divided by L, of networks that fit; descent is unstable above the dotted line."
        " (b) shows Tr Θ / L, without zero networks.",
    ),
]

overview = draw_rates
