"""Draw the figure of study `stability`, which is also its preview."""

from contextlib import suppress
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.rows import NoRows, Tables, nonempty, select
from runner.results.style import (
    BLUE,
    BROWN,
    DASHED,
    GREY,
    INK,
    ORANGE,
    QUIET,
    SKY,
    VERMILION,
    Look,
    guide,
    panel,
    shades,
    sheet,
    ticks,
)

BEFORE = Look(GREY, "o", DASHED, hollow=True)
LINES = {"depth": ((SKY, BLUE, INK), "osD^v"), "rate": ((ORANGE, VERMILION, BROWN), "Pph<X")}
"""Colors and markers of lines for depths and for rates, from the smallest depth or rate on."""

FEWEST = 3
"""Smallest number of networks whose median is drawn."""


HEIGHTS = (5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300)
"""Values at which the y-axes of figure 1's task have ticks."""

SYMBOLS = {"depth": "L", "rate": "c"}


def _fitting(tables: Tables) -> pd.DataFrame:
    """Return the networks that fit figure 1's task, with a column `kernel`, Tr Θ / L.

    Raises NoRows if no network fits.
    """
    rows = select(tables["metrics"], task="figure-1").query("train_cost < 0.1")
    rows = nonempty(rows, "networks that fit figure 1's task")
    return rows.assign(kernel=rows["ntk_trace"] / rows["depth"])


def lowered(tables: Tables) -> pd.DataFrame:
    """Return Tr Θ at the largest rate divided by Tr Θ of the same network before gradient descent.

    There is a row for each network that fits figure 1's task before. The column `ratio` is nan if
    it does not fit at the largest rate. The column `median` has the median of the depth, or nan if
    fewer than FEWEST networks of the depth fit. Raises NoRows if no depth has a median.
    """
    rows, rate = _fitting(tables), tables["metrics"]["rate"].max()
    keys = ["depth", "replicate"]
    after = rows[rows["rate"] == rate].set_index(keys)["kernel"].rename("after")
    rows = select(rows, rate=0).join(after, on=keys)
    rows = rows.assign(ratio=rows["after"] / rows["kernel"], largest=rate)
    by = rows.groupby("depth")["ratio"]
    rows = rows.assign(median=by.transform("median").where(by.transform("count") >= FEWEST))
    nonempty(rows.dropna(subset="median"), "depth with enough networks that fit")
    return rows


def _fall(rows: pd.DataFrame) -> str:
    """Return as text the smallest and largest median of `lowered`, in percent."""
    return f"{100 * rows['median'].min():.0f} to {100 * rows['median'].max():.0f} %"


def say_bounded(tables: Tables) -> str:
    """Return the headline: how far Tr Θ falls from before gradient descent to the largest rate.

    Its numbers are the smallest and largest median of a depth, of the networks that fit figure 1's
    task before and after, and the number of networks that no longer fit. Raises NoRows as
    `lowered`.
    """
    rows = lowered(tables)
    return (
        "Larger learning rates c/L force a smaller tangent kernel: at"
        f" c = {rows['largest'].iloc[0]:g} Tr Θ falls to {_fall(rows)} of its value;"
        f" {rows['ratio'].isna().sum()} of {len(rows)} networks no longer fit"
    )


def _lines(axes: Axes, rows: pd.DataFrame, x: str, y: str, apart: float = 0.0) -> dict[str, Look]:
    """Draw medians of a column divided by L, a line for each depth or each rate.

    A line is interrupted where fewer than FEWEST networks have a finite value above zero. x: "rate"
    or "depth", on the x-axis; the other one has the lines. y: the column. apart: distance in x
    between the marks of neighboring lines. Returns the names of the lines with their looks, by
    depth or rate. Raises NoRows if no point has enough networks.
    """
    other = {"rate": "depth", "depth": "rate"}[x]
    rows = rows.assign(height=rows[y] / rows["depth"])
    rows = rows.assign(
        height=rows["height"].where(np.isfinite(rows["height"]) & (rows["height"] > 0))
    )
    enough = rows.groupby([x, other])["height"].transform("count") >= FEWEST
    nonempty(rows[enough], f"{FEWEST} networks whose\nmedian can be drawn")
    ramp, signs = LINES[other]
    colors = shades(sorted({*rows[other]} - {0}), *ramp)
    markers = dict(zip(colors, cycle(signs), strict=False))
    looks = {}
    for value, networks in rows.groupby(other):
        look = Look(colors[value], markers[value], width=1.8) if value else BEFORE
        heights = networks.groupby(x)["height"]
        aside = apart * ([*colors].index(value) - (len(colors) - 1) / 2) if value else 0.0
        places = np.array([*heights.groups]) + aside
        look.line(axes, places, heights.median().where(heights.count() >= FEWEST))
        looks[f"{SYMBOLS[other]} = {value:g}" if value else "before"] = look
    axes.set_yscale("log")
    return looks


def _key(axes: Axes, looks: dict[str, Look], x: float, y: float) -> None:
    """Write the names of lines below each other, each next to its marker; (x, y): the lowest."""
    for row, (name, look) in enumerate(reversed(looks.items())):
        spot = {"transform": axes.transAxes, "clip_on": False}
        look.line(axes, x, y + 0.075 * row, markersize=6, **spot)
        look.note(axes, x + 0.06, y + 0.075 * row, name)


def draw_rates(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw curvature (a), kernel (b) by rate on figure 1's task; Example 20's kernel by depth (c).

    Curvature and tangent kernel are divided by L. Lines are medians. Returns the picture and the
    table `metrics`.
    """
    metrics = tables["metrics"]
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.6, right=1.05, left=0.5)
    rates = np.array(sorted({*metrics["rate"]} - {0}))
    first = rates[0] / 3  # place of the networks before gradient descent
    places = metrics["rate"].replace(0, first)
    apart = np.append(rates[1:] > 1.4 * rates[:-1], True)  # labels would overlap
    labels = [
        "before",
        *(f"{rate:g}" if far else "" for rate, far in zip(rates, apart, strict=True)),
    ]
    fitting = metrics.assign(rate=places).query("train_cost < 0.1 and task == 'figure-1'")
    for axes, column in ((left, "curvature"), (middle, "ntk_trace")):
        with or_empty(axes):
            nonempty(fitting, "networks that fit\nfigure 1's task")
            looks = _lines(axes, fitting, "rate", column)
            axes.set(xscale="log", xlim=(first / 1.5, 1.3 * rates[-1]))
            ticks(axes.xaxis, [first, *rates], labels)
            low, high = axes.get_ylim()
            ticks(axes.yaxis, [y for y in HEIGHTS if low <= y <= high])
            if axes is left:
                axes.set_ylim(axes.get_ylim())  # the guide may leave the panel
                guide(axes, rates, 2 / rates)
                QUIET.note(axes, 0.99, 0.8, "edge:\n2/c", ha="right")
                _key(axes, looks, 0.09, 0.06)
    with suppress(NoRows):
        fall = lowered(tables)
        drawn = fall.dropna(subset="median")
        words = f"c = {fall['largest'].iloc[0]:g} / before,\nmedians at L = {drawn['depth'].min()}"
        words += f"\nto {drawn['depth'].max()}: {_fall(fall)};"
        words += f"\n{fall['ratio'].isna().sum()} of {len(fall)} (all L)\nno longer fit"
        QUIET.note(middle, 0.04, 0.03, words, va="bottom")
    with or_empty(right):
        rows = select(metrics, task="example-20")
        depths = sorted(rows["depth"].unique())
        looks = _lines(right, rows, "depth", "ntk_trace", apart=(depths[-1] - depths[0]) / 40)
        _key(right, looks, 1.1, 0.3)
        ticks(right.xaxis, depths)
        if (rows["ntk_trace"] == 0).any():
            QUIET.note(right, 1.06, 0.02, "no mark:\nnetworks\nare zero", va="bottom")
    panel(left, "a", "figure 1: curvature / L", "c  (learning rate c/L)")
    panel(middle, "b", "figure 1: Tr Θ / L", "c  (learning rate c/L)")
    panel(right, "c", "Example 20: Tr Θ / L", "depth L")
    return picture, metrics


HEADLINE = ["train_cost", "ntk_trace", "curvature", "distance"]

FIGURES = [
    Drawing(
        "bottleneck-rates",
        draw_rates,
        marks="lines: medians of 3 or more networks",
        findings=[Finding(say_bounded, holds=["large-rate-small-kernel"])],
        caption="Gradient descent begins at trained networks of figure 1's task (a, b) and"
        " Example 20's networks (c). (a) shows the curvature 2 ‖Θ(X, X)‖ / N, divided by L; above"
        " the dotted line descent is unstable. (b, c) show Tr Θ / L. Lines: medians of"
        f" {FEWEST} or more networks that fit (c: nonzero).",
    ),
]

overview = draw_rates
