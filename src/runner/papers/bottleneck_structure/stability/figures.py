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
SHOWN = 0.1
"""The c whose fall of Tr Θ the headline states: a larger rate at which most networks fit."""

HEIGHTS = (5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300)
"""Values at which the y-axes of figure 1's task have ticks."""

SYMBOLS = {"depth": "L", "rate": "c"}


def _fitting(tables: Tables, task: str) -> pd.DataFrame:
    """Return the networks of a task that fit, with a column `kernel`, Tr Θ / L.

    Networks before gradient descent (rate 0) need not fit. Raises NoRows if no network fits.
    """
    rows = select(tables["metrics"], task=task)
    fitting = nonempty(rows.query("train_cost < 0.1"), "networks that fit\nfigure 1's task")
    rows = pd.concat([rows.query("rate == 0"), fitting.query("rate > 0")])
    return rows.assign(kernel=rows["ntk_trace"] / rows["depth"])


def lowered(tables: Tables) -> pd.DataFrame:
    """Return Tr Θ at the rate SHOWN divided by Tr Θ of the same network before gradient descent.

    There is a row for each network trained by Adam. The column `ratio` is nan if it does not fit
    after gradient descent. The column `median` has the median of the depth, or nan if fewer than
    FEWEST networks of the depth fit. Without the rate SHOWN, the smallest rate is used. Raises
    NoRows if no depth has a median.
    """
    rows, rates = _fitting(tables, "figure-1"), {*tables["metrics"]["rate"]} - {0}
    rate = SHOWN if SHOWN in rates else min(rates)
    keys = ["depth", "replicate"]
    after = rows[rows["rate"] == rate].set_index(keys)["kernel"].rename("after")
    rows = select(rows, rate=0).join(after, on=keys)
    rows = rows.assign(ratio=rows["after"] / rows["kernel"], shown=rate)
    by = rows.groupby("depth")["ratio"]
    rows = rows.assign(median=by.transform("median").where(by.transform("count") >= FEWEST))
    nonempty(rows.dropna(subset="median"), "depth with enough networks that fit")
    return rows


def _fall(rows: pd.DataFrame) -> str:
    """Return as text the smallest and largest median of `lowered`, in percent."""
    return f"{100 * rows['median'].min():.0f} to {100 * rows['median'].max():.0f} %"


def say_bounded(tables: Tables) -> str:
    """Return the headline: how far Tr Θ falls as networks go to the edge of stability.

    Its numbers are the smallest and largest median of a depth, of the networks that fit figure 1's
    task after gradient descent at the rate SHOWN. Raises NoRows as `lowered`.
    """
    rows = lowered(tables)
    return (
        f"At learning rate {rows['shown'].iloc[0]:g}/L, gradient descent goes to the edge of"
        f" stability; Tr Θ falls to {_fall(rows)}"
    )


def _lines(
    axes: Axes, rows: pd.DataFrame, x: str, y: str, among: pd.Series, apart: float = 0.0
) -> dict[str, Look]:
    """Draw medians of a column divided by L, a line for each depth or each rate.

    A line is interrupted where fewer than FEWEST networks have a finite value above zero. x: "rate"
    or "depth", on the x-axis; the other one has the lines. y: the column. among: all depths or
    rates of the picture, which have a color each. apart: distance in x between the marks of
    neighboring lines. Returns the names of the lines with their looks, by
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
    colors = shades(sorted({*among} - {0}), *ramp)
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


def _by_rate(axes: Axes, rows: pd.DataFrame, column: str) -> dict[str, Look]:
    """Draw a column divided by L against c; before gradient descent c is 0, at the left end.

    Returns the names of the lines with their looks. Raises NoRows as `_lines`.
    """
    rates = np.array(sorted({*rows["rate"]} - {0}))
    first = rates[0] / 3
    apart = np.append(rates[1:] > 1.4 * rates[:-1], True)  # labels would overlap
    labels = [f"{rate:g}" if far else "" for rate, far in zip(rates, apart, strict=True)]
    shifted = rows.assign(rate=rows["rate"].replace(0, first))
    looks = _lines(axes, shifted, "rate", column, rows["depth"])
    axes.set(xscale="log", xlim=(first / 1.5, 1.3 * rates[-1]))
    ticks(axes.xaxis, [first, *rates], ["before", *labels])
    low, high = axes.get_ylim()
    ticks(axes.yaxis, [y for y in HEIGHTS if low <= y <= high])
    return looks


def _by_depth(axes: Axes, rows: pd.DataFrame, rates: pd.Series) -> None:
    """Draw Tr Θ / L against the depth, a line for each rate.

    rates: all rates of the picture. Raises NoRows as `_lines`.
    """
    depths = sorted(rows["depth"].unique())
    apart = (depths[-1] - depths[0]) / 40
    looks = _lines(axes, rows, "depth", "ntk_trace", rates, apart)
    _key(axes, looks, 1.1, 0.3)
    ticks(axes.xaxis, depths)


def draw_rates(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw curvature (a) and kernel (b) by rate; kernel by depth from scratch (c), Example 20 (d).

    Curvature and tangent kernel are divided by L. Lines are medians. Returns the picture and the
    table `metrics`.
    """
    metrics = tables["metrics"]
    picture, ((a, b), (c, d)) = sheet(2, 2, height=8.2, gap=1.7, right=1.3, left=0.5)
    for axes, column in ((a, "curvature"), (b, "ntk_trace")):
        with or_empty(axes):
            rows = _fitting(tables, "figure-1")
            looks = _by_rate(axes, rows, column)
            if axes is a:
                rates = np.array(sorted({*rows["rate"]} - {0}))
                axes.set_ylim(axes.get_ylim())  # the guide may leave the panel
                guide(axes, rates, 2 / rates)
                QUIET.note(axes, 0.99, 0.8, "edge of\nstability: 2/c", ha="right")
                _key(axes, looks, 1.05, 0.3)
    with suppress(NoRows):
        fall = lowered(tables)
        drawn = fall.dropna(subset="median")
        words = f"at c = {fall['shown'].iloc[0]:g} medians are\n{_fall(fall)} of before"
        words += f"\n(L = {drawn['depth'].min()} to {drawn['depth'].max()})"
        QUIET.note(b, 0.04, 0.03, words, va="bottom")
    with or_empty(c):
        _by_depth(c, _fitting(tables, "scratch"), metrics["rate"])
    with or_empty(d):
        rows = select(metrics, task="example-20")
        _by_depth(d, rows, metrics["rate"])
        if (rows["ntk_trace"] == 0).any():
            QUIET.note(d, 1.06, 0.02, "no mark:\nnetworks\nare zero", va="bottom")
    panel(a, "a", "curvature / L, trained by Adam", "c  (learning rate c/L)")
    panel(b, "b", "Tr Θ / L (Θ: tangent kernel)", "c  (learning rate c/L)")
    panel(c, "c", "Tr Θ / L, from random weights", "depth L")
    panel(d, "d", "Tr Θ / L, Example 20", "depth L")
    return picture, metrics


HEADLINE = ["train_cost", "ntk_trace", "curvature", "distance"]

FIGURES = [
    Drawing(
        "bottleneck-rates",
        draw_rates,
        marks="lines: medians of 3 or more networks",
        findings=[
            Finding(say_bounded, holds=["rate-bounds-kernel", "large-rate-small-kernel"]),
        ],
        caption="Gradient descent begins at networks that Adam trained on figure 1's task (a, b),"
        " at random weights on the same task (c), and at Example 20's networks (d). (a) shows the"
        " largest curvature of the training error by all parameters, divided by L; above the dotted"
        " line descent is unstable. (b, c, d) show Tr Θ / L of the weights. Lines: medians of"
        f" {FEWEST} or more networks that fit (before: all, d: nonzero).",
    ),
]

overview = draw_rates
