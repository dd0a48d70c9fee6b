"""Draw the figure of study `stability`, which is also its preview."""

from itertools import cycle, product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.rows import Tables, nonempty, select
from runner.results.style import (
    BLUE,
    BROWN,
    DASHED,
    GREY,
    INK,
    ORANGE,
    QUIET,
    SKY,
    SMALL,
    VERMILION,
    Look,
    guide,
    level,
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


def _per_layer(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with Tr Θ / L as column `kernel`, curvature / L as `sharpness`."""
    kernel, sharpness = (rows[name] / rows["depth"] for name in ("ntk_trace", "curvature"))
    return rows.assign(kernel=kernel, sharpness=sharpness)


def _fitting(tables: Tables, task: str) -> pd.DataFrame:
    """Return the networks of a task that fit, with the columns of `_per_layer`.

    Networks before gradient descent (rate 0) need not fit. Raises NoRows if no network fits.
    """
    rows = select(tables["metrics"], task=task)
    fitting = nonempty(rows.query("train_cost < 0.1"), "networks that fit\nfigure 1's task")
    return _per_layer(pd.concat([rows.query("rate == 0"), fitting.query("rate > 0")]))


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
    """Draw medians of a column, a line for each depth or each rate.

    A line is interrupted where fewer than FEWEST networks have a finite value above zero. x: "rate"
    or "depth", on the x-axis; the other one has the lines. y: the column with heights. among: all
    depths or rates of the picture, which have a color each. apart: distance in x between the marks
    of neighboring lines. Returns the names of the lines with their looks, by depth or rate.
    Raises NoRows if no point has enough networks.
    """
    other = {"rate": "depth", "depth": "rate"}[x]
    rows = rows.assign(height=rows[y].where(np.isfinite(rows[y]) & (rows[y] > 0)))
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
    step = 0.22 * axes.figure.dpi / axes.bbox.height  # inches
    for row, (name, look) in enumerate(reversed(looks.items())):
        spot = {"transform": axes.transAxes, "clip_on": False}
        look.line(axes, x, y + step * row, markersize=6, **spot)
        look.note(axes, x + 0.06, y + step * row, name)


def _curvatures(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the curvature against c, and the edge of stability; Adam's networks are at the left.

    Raises NoRows as `_lines`.
    """
    rates = np.array(sorted({*rows["rate"]} - {0}))
    first = rates[0] / 3
    apart = np.append(rates[1:] > 1.4 * rates[:-1], True)  # labels would overlap
    labels = [f"{rate:g}" if far else "" for rate, far in zip(rates, apart, strict=True)]
    shifted = rows.assign(rate=rows["rate"].replace(0, first))
    looks = _lines(axes, shifted, "rate", "sharpness", rows["depth"])
    axes.set(xscale="log", xlim=(first / 1.5, 1.3 * rates[-1]))
    ticks(axes.xaxis, [first, *rates], ["Adam\nalone", *labels])
    low, high = axes.get_ylim()
    ticks(axes.yaxis, [y for y in HEIGHTS if low <= y <= high])
    axes.set_ylim(low, high)  # the guide may leave the panel
    guide(axes, rates, 2 / rates)
    QUIET.note(axes, 0.99, 0.8, "edge of\nstability: 2/c", ha="right")
    _key(axes, looks, 1.05, 0.3)


def _falls(axes: Axes, rows: pd.DataFrame, shown: float) -> None:
    """Draw Tr Θ of each network divided by its Tr Θ before, in columns by c and by depth.

    rows: as of `_fitting`, for figure 1's task. shown: the c whose medians have their numbers.
    Raises NoRows if no depth and c has FEWEST networks.
    """
    keys = ["depth", "replicate"]
    before = rows[rows["rate"] == 0].set_index(keys)["kernel"].rename("before")
    rows = rows[rows["rate"] > 0].join(before, on=keys)
    rows = rows.assign(ratio=rows["kernel"] / rows["before"]).dropna(subset="ratio")
    rates, depths = sorted(rows["rate"].unique()), sorted(rows["depth"].unique())
    colors, count = shades(depths, *LINES["depth"][0]), len(depths)
    enough = rows.groupby(["rate", "depth"])["ratio"].transform("count") >= FEWEST
    rows = nonempty(rows[enough], f"{FEWEST} networks whose\nmedian can be drawn")
    wide = np.where(np.array(rates) == shown, 0.85, 0.24) * count  # numbers need room
    places = np.cumsum(wide + 0.2) - wide / 2
    for (rate, place, width), column in product(
        zip(rates, places, wide, strict=True), range(count)
    ):
        ratios = rows.query("rate == @rate and depth == @depths[@column]")["ratio"]
        if ratios.empty:
            continue
        look = Look(colors[depths[column]], LINES["depth"][1][column % 5])
        x, median = place + width * ((column + 0.3) / count - 0.5), ratios.median()
        look.each(axes, np.full(len(ratios), x), ratios)
        look.line(axes, x, median, markersize=8)
        if rate == shown:
            look.name(axes, x + 0.11, median, f"{100 * median:.0f} %", ha="left", size=SMALL)
    level(axes, 1.0, "as before", at=0.72)
    low, high = rows["ratio"].min() - 0.05, max(1.08, rows["ratio"].max() + 0.05)
    percent = [value for value in range(0, 1000, 10) if low <= value / 100 <= high]
    ticks(axes.yaxis, [value / 100 for value in percent], [f"{value} %" for value in percent])
    axes.set(xlim=(0, places[-1] + wide[-1] / 2), ylim=(low, high))
    ticks(axes.xaxis, places, [f"{rate:g}" for rate in rates])
    for edge in (places + wide / 2 + 0.1)[:-1]:
        axes.axvline(edge, color="0.85", linewidth=0.8, zorder=0)


def _by_depth(axes: Axes, rows: pd.DataFrame, rates: pd.Series) -> None:
    """Draw Tr Θ / L against the depth, a line for each rate.

    rates: all rates of the picture. Raises NoRows as `_lines`.
    """
    depths = sorted(rows["depth"].unique())
    apart = (depths[-1] - depths[0]) / 40
    looks = _lines(axes, rows, "depth", "kernel", rates, apart)
    _key(axes, looks, 1.1, 0.36)
    ticks(axes.xaxis, depths)


def draw_rates(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw curvature (a) and kernel (b) by rate; kernel by depth from scratch (c), Example 20 (d).

    In b, Tr Θ is divided by that of the same network before gradient descent; in all others,
    curvature and Tr Θ are divided by L. Lines are medians. Returns the picture and the table
    `metrics`.
    """
    metrics = tables["metrics"]
    options = {"height": 7.4, "heights": (1.6, 1), "between": 1.3}
    picture, ((a, b), (c, d)) = sheet(2, 2, gap=1.7, right=1.3, left=0.5, **options)
    corner, height = b.get_position().p0, b.get_position().height
    b.set_position((*corner, 0.97 - corner[0], height))  # names need no room at its right
    with or_empty(a):
        _curvatures(a, _fitting(tables, "figure-1"))
    with or_empty(b):
        _falls(b, _fitting(tables, "figure-1"), lowered(tables)["shown"].iloc[0])
    with or_empty(c):
        _by_depth(c, _fitting(tables, "scratch"), metrics["rate"])
    with or_empty(d):
        rows = select(metrics, task="example-20")
        _by_depth(d, _per_layer(rows), metrics["rate"])
        if (rows["ntk_trace"] == 0).any():
            QUIET.note(d, 1.06, -0.06, "no mark:\nnetworks\nare zero", va="bottom")
    panel(a, "a", "curvature / L, Adam then gradient descent", "c  (learning rate c/L of descent)")
    panel(b, "b", "Tr Θ after / before gradient descent", "c  (learning rate c/L)")
    panel(c, "c", "Tr Θ / L, from random weights", "depth L")
    panel(d, "d", "Tr Θ / L, from Example 20", "depth L")
    return picture, metrics


HEADLINE = ["train_cost", "ntk_trace", "curvature", "distance"]

FIGURES = [
    Drawing(
        "bottleneck-rates",
        draw_rates,
        marks="lines and large marks: medians of 3 or more networks",
        findings=[
            Finding(say_bounded, holds=["rate-bounds-kernel", "large-rate-small-kernel"]),
        ],
        caption="Gradient descent begins at networks that Adam trained on figure 1's task (a, b),"
        " at random weights on the same task (c), and at Example 20's networks (d). (a) shows the"
        " largest curvature of the training error by all parameters, divided by L; above the dotted"
        " line descent is unstable. (b) shows Tr Θ (Θ: tangent kernel), divided by its value"
        " before gradient descent; small dots are networks. (c, d) show Tr Θ / L. Marks are"
        f" medians of {FEWEST} or more networks that fit; before gradient descent all networks"
        " count, and in (d) all that are not zero.",
    ),
]

overview = draw_rates
