"""Draw the figures of study `constructions`, and the preview of one run."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.constructions.tables import full_rank_by_sparsity, random_targets
from runner.papers.norm_tuning.looks import THEOREMS
from runner.papers.norm_tuning.names import NAMES
from runner.results import style
from runner.results.curves import curves
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.looks import Name
from runner.results.rows import NoRows, Tables, nonempty, select, spread
from runner.results.style import QUIET, Look, guide, name_ends, panel, rail, shades, sheet, ticks

FLOOR, TOP = 1e-16, 10.0
"""Ends of the axis of errors."""
EXACT = Look(style.INK, "o", style.DOTTED, 1.6, hollow=True)
"""Look of Theorem 2 computed with a hundred digits, at every d."""

POWERS = {10.0**power: f"$10^{{{power}}}$" for power in (-15, -10, -5, 0)}


def _double(tables: Tables) -> pd.DataFrame:
    """Return the networks in double precision, with random targets, whose systems have full rank.

    Raises NoRows if there are none.
    """
    rows = select(random_targets(tables["metrics"]), dtype="float64")
    return nonempty(rows[rows["full_rank"].astype(bool)], "systems of full rank")


def say_exact(tables: Tables) -> str:
    """Return the headline of figure `constructions`, with the number of networks of full rank.

    The headline states that these networks equal their targets. Raises NoRows if there are none.
    """
    return (
        f"All {len(_double(tables)):,} networks with a system of full rank equal their targets up"
        " to rounding; small blocks need more digits"
    )


def draw_constructions(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `constructions`: largest errors of constructed networks on random inputs.

    Panel (a) has on its x-axis the error that rounding in double precision can cause. Panel (b)
    shows Theorem 2 against the block size k, in double precision and with 100 digits. Returns the
    picture, and a table with median and range, or with the median, of the errors of each kind of
    network.
    """
    picture, ((left, right),) = sheet(left=0.85, right=0.95, gap=0.95)
    left.set(yscale="log", ylim=(FLOOR, TOP))
    position = rail(right, FLOOR, TOP)
    for axes in (left, right):
        ticks(axes.yaxis, POWERS, list(POWERS.values()))
    drawn = [pd.DataFrame({"panel": []})]
    with or_empty(left):
        drawn.append(_against_rounding(left, _double(tables)).assign(panel="rounding"))
    with or_empty(right):
        drawn.append(_by_block(right, tables["metrics"], position).assign(panel="block size"))
    panel(left, "a", "largest error, double precision", "error that rounding can cause")
    panel(right, "b", "largest error of Theorem 2", "block size k  (layers: d k; target: d)")
    return picture, pd.concat(drawn)


def _against_rounding(axes: Axes, rows: pd.DataFrame) -> pd.DataFrame:
    """Draw the largest error of every network against the error that rounding allows."""
    end = 2.5  # room for a dot at 1
    axes.set(xscale="log", xlim=(FLOOR, end))
    ticks(axes.xaxis, POWERS, list(POWERS.values()))
    axes.fill([FLOOR, end, end, FLOOR], [FLOOR, end, TOP, TOP], color=style.SHADE, lw=0, zorder=0)
    QUIET.name(axes, 2 * FLOOR, 1e-3, "more than\nrounding", ha="left", path_effects=None)
    for number, (theorem, look) in enumerate(THEOREMS.items()):
        errors = rows[rows["theorem"] == theorem]
        x, y = errors["rounding"].clip(FLOOR, 1), errors["max_abs_error"].clip(FLOOR, TOP)
        if theorem == "low_rank":  # few networks, among many others
            ring = {"markersize": 4.5, "markeredgewidth": 1.0, "markerfacecolor": "none"}
            look.line(axes, x, y, linestyle="", markeredgecolor=look.color, **ring)
        else:
            look.each(axes, x, y)
        text = NAMES["theorem"][theorem].drawn
        look.name(axes, 0.7, 10 ** (1.15 * number - 15.25), text, ha="right")
    words = f"{len(rows):,} networks,\na dot or ring each"
    style.PLAIN.note(axes, 0.03, 0.91, words, path_effects=None)
    keys = ["theorem", "target_width", "width", "block", "rank", "depth", "sparsity"]
    return spread(rows, keys, ["max_abs_error", "rounding"])


def _by_block(axes: Axes, metrics: pd.DataFrame, position: Callable) -> pd.DataFrame:
    """Draw the errors of Theorem 2 against the block size k, in both arithmetics.

    position: function from errors to heights. Returns the drawn medians. Raises NoRows if no target
    width was run with several block sizes.
    """
    rows = random_targets(metrics).query("theorem == 'deep' and depth == 1")
    blocks = rows.groupby("target_width")["block"].transform("nunique")
    rows = nonempty(rows[blocks > 1], "several block sizes of one width")
    keys = ["target_width", "dtype", "block"]
    drawn = rows.groupby(keys, as_index=False)["max_abs_error"].median()
    colors = shades(
        sorted(drawn["target_width"].unique()), "#d98fb5", THEOREMS["deep"].color, "#3d0b28"
    )
    names = {d: Name(f"d = {d}", Look(color, "D")) for d, color in colors.items()}
    is_double, columns = drawn["dtype"] == "float64", ("block", "max_abs_error", "target_width")
    ends = curves(axes, drawn[is_double], *columns, names.__getitem__, height=position)
    name_ends(axes, ends)
    with_digits = drawn[~is_double]
    curves(axes, with_digits, *columns, lambda d: Name("", EXACT), height=position)
    if len(with_digits):
        most = with_digits["target_width"].max()
        spot = {"ha": "left", "transform": axes.get_yaxis_transform(), "size": style.SMALL}
        EXACT.name(axes, 1.03, float(position(0.0)), f"100 digits,\nd ≤ {most}", **spot)
        style.PLAIN.note(axes, 0.45, 0.38, "double precision")
    ticks(axes.xaxis, sorted(rows["block"].unique()))
    return drawn


def _shares(tables: Tables) -> pd.DataFrame:
    """Return the fraction of networks of full rank by target width d and fraction p.

    The column `scaled` is p / (log d / d). Raises NoRows if no random target was run, or no network
    with sparse weights.
    """
    share = nonempty(full_rank_by_sparsity(tables["metrics"]), "sparse networks at m = d²")
    unit = np.log(share["target_width"]) / share["target_width"]
    return share.assign(scaled=share["sparsity"] / unit)


def _least(share: pd.DataFrame) -> int:
    """Return the smallest percentage of exact networks at p = 3 log d / d, rounded down.

    share: the rows of `_shares`. Raises NoRows if no network has this p.
    """
    return int(100 * select(share.round({"scaled": 1}), scaled=3)["fraction"].min())


def say_sparse(tables: Tables) -> str:
    """Return the headline of figure `constructions-sparse`: the percentage of exact networks.

    It is the smallest percentage over the target widths d, at a fraction p = 3 log d / d of nonzero
    weights. Raises NoRows if no network has this p.
    """
    return (
        "As conjectured, a fraction p = 3 log d / d of weights is enough:"
        f" {_least(_shares(tables))} % of networks or more are exact"
    )


def draw_sparse(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `constructions-sparse`: the fraction of networks of full rank.

    The x-axis has p, the fraction of nonzero weights, divided by log d / d in panel (a) and by its
    root in panel (b). Full rank means that the network can equal every target of width d. Squares
    are measured. Lines are the probability that each hidden unit has incoming and outgoing weights.
    Returns the picture and the measured fractions by d and p.
    """
    from runner.papers.norm_tuning.theory import live_units_probability  # late import of torch

    share = _shares(tables)
    colors = shades(sorted(share["target_width"].unique()), "#8fd19e", "#2f9e5c", "#00441b")
    picture, ((left, right),) = sheet(sharey=True)
    p = np.linspace(0.01, 1, 400)
    for d, color in colors.items():
        look, points = Look(color, "s", width=1.4), share[share["target_width"] == d]
        closed = [live_units_probability(d, d, d**2, value) for value in p]
        for axes, power in ((left, 1.0), (right, 0.5)):
            unit = (np.log(d) / d) ** power
            look.line(axes, p / unit, closed, marker="")
            look.line(axes, points["sparsity"] / unit, points["fraction"], linestyle="")
    guide(left, [3, 3], [0, 1.05])
    QUIET.name(left, 3.08, 0.12, "p =\n3 log d / d", ha="left")
    with suppress(NoRows):
        style.PLAIN.name(left, 3.08, 0.9, f"{_least(share)} % or more", ha="left")
    guide(right, [2, 2], [0, 1.05])
    QUIET.name(right, 1.95, 0.22, "p = 2 √(log d / d),\nour constant", ha="right")
    ends = {min(colors): (12, -4), max(colors): (-9, 12)}
    for d, away in ends.items():
        unit = (np.log(d) / d) ** 0.5
        closed = np.array([live_units_probability(d, d, d**2, value) for value in p])
        at = p[np.argmin(abs(closed - 0.45))] / unit
        Look(colors[d]).name_at(right, p / unit, closed, f"d = {d}", at, away)
    between = [f"{d}" for d in colors if d not in ends]
    if between:
        style.PLAIN.note(right, 0.895, 0.62, f"between:\nd = {', '.join(between)}", ha="right")
    color = colors[max(colors)]
    kinds = {
        "measured": Look(color, "s", ""),
        "probability\nthat no unit\nis cut off": Look(color, ""),
    }
    style.key(left, kinds, loc="upper left", bbox_to_anchor=(0, 0.95), title="d: target width")
    left.set(xlim=(0, 4.4), ylim=(-0.03, 1.05))
    right.set_xlim(0, 2.2)
    panel(left, "a", "fraction of exact networks", "fraction p of nonzero weights / (log d / d)")
    panel(right, "b", "fraction, in units of Theorem 3", "p / √(log d / d)")
    return picture, share.drop(columns="scaled")


HEADLINE = ["max_abs_error", "agreement", "condition_number", "numerical_rank"]

FIGURES = [
    Drawing(
        "constructions",
        draw_constructions,
        whose="as in the paper",
        findings=[
            Finding(
                say_exact,
                holds=["wide-exact", "low-rank-exact", "deep-exact", "deep-exact-with-digits"],
            )
        ],
        marks="lines: medians",
        caption="The error is the largest difference between network and target on the unit sphere"
        " (≈ 0: below 1e-16). (a) shows this error in networks whose linear equations for γ have"
        " full rank, against an estimate of the rounding error: number of equations × machine"
        " precision × condition number. (b) shows the median error against the block size of"
        " Theorem 2.",
        shows={"theorem": ["wide", "low_rank", "deep"]},
    ),
    Drawing(
        "constructions-sparse",
        draw_sparse,
        whose="as in the paper",
        findings=[Finding(say_sparse, holds=["sparse-conjecture", "sparse-threshold"])],
        caption="The figure shows the fraction of random networks of width d² that can equal"
        " every target of width d, against the fraction p of nonzero weights, divided by"
        " log(d)/d in (a) and √(log(d)/d) in (b). Solid lines are the probability that every"
        " unit stays connected. The dotted line is p = 3 log(d)/d in (a) and p = 2 √(log(d)/d)"
        " in (b), where the constant 2 is ours.",
        shows={"theorem": ["sparse"]},
    ),
]
