"""Drawings of study `constructions`."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.constructions.tables import full_rank_by_sparsity, random_targets
from runner.papers.norm_tuning.looks import CONSTRUCTION, THEOREMS
from runner.results import style
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import nonempty, select
from runner.results.spreads import spread
from runner.results.style import QUIET, Look, guide, name_ends, panel, rail, shades, sheet, ticks

NAMES = {"low_rank": "Corollary 1, low rank", "wide": "Theorem 1, wide", "deep": "Theorem 2, deep"}

FLOOR, TOP = 1e-16, 10.0
"""Ends of the scale of an error."""
POWERS = {10.0**power: f"$10^{{{power}}}$" for power in (-15, -10, -5, 0)}


def _double(tables: Tables) -> pd.DataFrame:
    """Select double-precision networks whose systems have full rank; raise NoRows without one."""
    rows = select(random_targets(tables["metrics"]), dtype="float64")
    return nonempty(rows[rows["full_rank"].astype(bool)], "systems of full rank")


def say_exact(tables: Tables) -> str:
    """Say how many networks err by more than rounding allows."""
    rows = _double(tables)
    above = int((rows["max_abs_error"] > rows["rounding"]).sum())
    return (
        f"All constructions are exact: of {len(rows):,} networks of full rank"
        f" {above or 'none'} errs by more than rounding allows; with 100 digits nothing is left"
    )


def draw_constructions(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw every network against rounding, and Theorem 2 with more digits."""
    picture, ((left, right),) = sheet(left=0.85, right=1.0, sharey=True)
    place = rail(left, FLOOR, TOP)
    rail(right, FLOOR, TOP, "")
    ticks(left.yaxis, POWERS, list(POWERS.values()))
    drawn = [pd.DataFrame({"panel": []})]
    with or_empty(left):
        drawn.append(_against_rounding(left, _double(tables)).assign(panel="rounding"))
    with or_empty(right):
        drawn.append(_by_block(right, tables["metrics"], place).assign(panel="block size"))
    panel(left, "a", "largest |f − g|, double precision", "what rounding allows:  Σ n ε κ(K)")
    panel(right, "b", "the same, Theorem 2", "block size k")
    return picture, pd.concat(drawn)


def _against_rounding(axes: Axes, rows: pd.DataFrame) -> pd.DataFrame:
    """Draw the largest error of every network against what rounding allows."""
    axes.set(xscale="log", xlim=(FLOOR, 1))
    ticks(axes.xaxis, POWERS, list(POWERS.values()))
    axes.fill([FLOOR, 1, 1, FLOOR], [FLOOR, 1, TOP, TOP], color=style.SHADE, lw=0, zorder=0)
    QUIET.name(axes, 2 * FLOOR, 1e-3, "not exact", ha="left", path_effects=None)
    for number, (theorem, look) in enumerate(THEOREMS.items()):
        of = rows[rows["theorem"] == theorem]
        look.each(axes, of["rounding"].clip(FLOOR, 1), of["max_abs_error"].clip(FLOOR, TOP))
        look.name(axes, 0.7, 10 ** (1.15 * number - 15.25), NAMES[theorem], ha="right")
    keys = ["theorem", "target_width", "width", "block", "rank", "depth", "sparsity"]
    return spread(rows, keys, ["max_abs_error", "rounding"])


def _by_block(axes: Axes, metrics: pd.DataFrame, place: Callable) -> pd.DataFrame:
    """Draw Theorem 2 by block size: in double precision, and on the rail with 100 digits."""
    rows = random_targets(metrics).query("theorem == 'deep' and depth == 1")
    blocks = rows.groupby("target_width")["block"].transform("nunique")
    rows = nonempty(rows[blocks > 1], "several block sizes of one width")
    keys = ["target_width", "dtype", "block"]
    drawn = rows.groupby(keys, as_index=False)["max_abs_error"].median()
    colors = shades(
        sorted(drawn["target_width"].unique()), "#d98fb5", THEOREMS["deep"].color, "#3d0b28"
    )
    names = {}
    for (d, dtype), of in drawn.groupby(["target_width", "dtype"]):
        text, dashes = (f"d = {d}", "-") if dtype == "float64" else ("100 digits", style.DOTTED)
        look, errors = Look(colors[d], "D", dashes), place(of["max_abs_error"])
        look.line(axes, of["block"], errors)
        names[text] = (errors[-1], text, look)
    name_ends(axes, list(names.values()))
    ticks(axes.xaxis, sorted(rows["block"].unique()))
    return drawn


def _shares(tables: Tables) -> pd.DataFrame:
    """Return the share of full rank by d and p, and p over log d / d; raise NoRows without any."""
    share = nonempty(full_rank_by_sparsity(tables["metrics"]), "sparse networks at m = d²")
    unit = np.log(share["target_width"]) / share["target_width"]
    return share.assign(scaled=share["sparsity"] / unit)


def say_sparse(tables: Tables) -> str:
    """Say how many are exact at twice and at three times log d / d."""
    share = _shares(tables).round({"scaled": 1})
    two, three = (100 * select(share, scaled=at)["fraction"] for at in (2, 3))
    return (
        f"{two.min():.0f} to {two.max():.0f} % of sparse frozen networks are exact at p ="
        f" 2 log d / d, {int(three.min())} % or more at 3 log d / d, as conjectured; the proof asks"
        " for 2 √(log d / d)"
    )


def draw_sparse(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the share of full rank against p, in the conjecture's scale and in the proof's."""
    from runner.papers.norm_tuning.theory import live_units_probability  # late: torch

    share = _shares(tables)
    colors = shades(sorted(share["target_width"].unique()), "#8fd19e", "#2f9e5c", "#00441b")
    picture, ((left, right),) = sheet(sharey=True)
    p = np.linspace(0.01, 1, 400)
    for d, color in colors.items():
        look, found = Look(color, "s", width=1.4), share[share["target_width"] == d]
        closed = [live_units_probability(d, d, d**2, each) for each in p]
        for axes, power in ((left, 1.0), (right, 0.5)):
            unit = (np.log(d) / d) ** power
            look.line(axes, p / unit, closed, marker="")
            look.line(axes, found["sparsity"] / unit, found["fraction"], linestyle="")
    guide(right, [2, 2], [0, 1.05])
    QUIET.name(right, 1.95, 0.22, "the proof's\nsmallest p", ha="right")
    first, last = (list(colors)[place] for place in (0, -1))
    CONSTRUCTION.name(left, 2.5, 0.5, f"d = {first} (light)\nto {last} (dark)", ha="left")
    left.set(xlim=(0, 4.4), ylim=(-0.03, 1.05))
    right.set_xlim(0, 2.2)
    panel(left, "a", "share that is exact", "share of weights p / (log d / d)")
    panel(right, "b", "the same", "share of weights p / √(log d / d)")
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
        caption="Largest difference |f(x) − g(x)| of a constructed network and its random target"
        " at points of the unit sphere; frozen weights are normal, at d = 10 also uniform. (a)"
        " Every network whose systems have full rank, in double precision, against what rounding"
        " allows: n equations times machine epsilon times the condition number of K, in sum over"
        " the systems; shaded: more than that. (b) Theorem 2 by block size k: in double precision,"
        " whatever the rank, and, dotted, with 100 digits. Lines are medians over the replicates."
        " What is below 1e-16 lies on the rail.",
        shows={"theorem": ["wide", "low_rank", "deep"]},
    ),
    Drawing(
        "constructions-sparse",
        draw_sparse,
        whose="as in the paper",
        findings=[Finding(say_sparse, holds=["sparse-conjecture", "sparse-threshold"])],
        caption="Share of the sparse random networks of width m = d² that equal every target,"
        " because K has full rank, against the share p of frozen weights that are not zero: (a)"
        " over log d / d, as the paper conjectures; (b) over its root, as it proves; dotted: the"
        " smallest p of the proof. Squares are shares of the draws; lines, one for each d, are the"
        " probability, in closed form, that no hidden unit is cut off. The larger d, the darker.",
        shows={"theorem": ["sparse"]},
    ),
]
