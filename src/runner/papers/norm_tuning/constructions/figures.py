"""Drawings of study `constructions`."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.constructions.tables import full_rank_by_sparsity, random_targets
from runner.papers.norm_tuning.looks import CONSTRUCTION, THEOREMS
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import nonempty
from runner.results.style import (
    DOTTED,
    Look,
    guide,
    name_ends,
    panel,
    rail,
    shades,
    sheet,
    ticks,
)

NAMES = {
    "sparse": "Theorem 3, sparse",
    "low_rank": "Corollary 1, low rank",
    "wide": "Theorem 1, wide",
    "deep": "Theorem 2, deep",
}

FLOOR, TOP = 1e-16, 10.0
"""Ends of the scale of an error."""

FORBIDDEN = Look("#a33a3a")
DEEP = THEOREMS["deep"]


def _double(metrics: pd.DataFrame) -> pd.DataFrame:
    """The networks in double precision whose systems have full rank. Raises NoRows without one."""
    rows = random_targets(metrics)
    rows = rows[(rows["dtype"] == "float64") & rows["full_rank"].astype(bool)]
    return nonempty(rows, "float64 systems of full rank")


def say_exact(tables: Tables) -> str:
    """How many networks err by more than rounding allows."""
    rows = _double(tables["metrics"])
    above = int((rows["max_abs_error"] > rows["rounding"]).sum())
    return (
        f"All four constructions are exact: of {len(rows):,} networks of full rank"
        f" {above or 'none'} errs by more than rounding allows; with 100 digits nothing is left"
    )


def draw_constructions(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Every network against rounding, and Theorem 2 with more digits."""
    metrics = tables["metrics"]
    picture, ((left, right),) = sheet(left=0.85, sharey=True)
    place = rail(left, FLOOR, TOP)
    rail(right, FLOOR, TOP, "")
    powers = {1e-15: "$10^{-15}$", 1e-10: "$10^{-10}$", 1e-5: "$10^{-5}$", 1: "1"}
    ticks(left.yaxis, powers, list(powers.values()))
    drawn = []
    with or_empty(left):
        drawn.append(_against_rounding(left, _double(metrics)).assign(panel="rounding"))
    with or_empty(right):
        drawn.append(_by_block(right, metrics, place).assign(panel="block size"))
    panel(left, "a", "largest |f − g|, double precision", "what rounding allows:  n ε κ(K)")
    panel(right, "b", "the same, Theorem 2", "block size k")
    return picture, pd.concat(drawn) if drawn else pd.DataFrame({"panel": []})


def _against_rounding(axes: Axes, rows: pd.DataFrame) -> pd.DataFrame:
    """Every network: its largest error, and what rounding allows."""
    axes.set(xscale="log", xlim=(1e-14, 1))
    powers = {1e-14: "$10^{-14}$", 1e-10: "$10^{-10}$", 1e-5: "$10^{-5}$", 1: "1"}
    ticks(axes.xaxis, powers, list(powers.values()))
    axes.fill([1e-14, 1, 1, 1e-14], [1e-14, 1, TOP, TOP], color="#f6dede", lw=0, zorder=0)
    FORBIDDEN.name(axes, 1.6e-14, 1e-3, "not exact", ha="left", path_effects=None)
    there = [theorem for theorem in NAMES if theorem in set(rows["theorem"])]
    for number, theorem in enumerate(there):
        of, look = rows[rows["theorem"] == theorem], THEOREMS[theorem]
        look.each(axes, of["rounding"].clip(1e-14, 1), of["max_abs_error"].clip(FLOOR, TOP))
        look.name(axes, 0.7, 10 ** (1.15 * number - 15.25), NAMES[theorem], ha="right")
    keys = ["theorem", "target_width", "width", "block", "rank", "depth", "sparsity"]
    groups = rows.groupby(keys)[["max_abs_error", "rounding"]]
    return groups.agg(["median", "max"]).pipe(_flat)


def _flat(drawn: pd.DataFrame) -> pd.DataFrame:
    drawn.columns = ["_".join(name) for name in drawn.columns]
    return drawn.reset_index()


def _by_block(axes: Axes, metrics: pd.DataFrame, place) -> pd.DataFrame:
    """Theorem 2 by block size: in double precision, and on the rail with 100 digits."""
    rows = random_targets(metrics)
    rows = rows[(rows["theorem"] == "deep") & (rows["depth"] == rows["depth"].min())]
    blocks = rows.groupby("target_width")["block"].nunique()
    rows = rows[rows["target_width"].isin(blocks.index[blocks > 1])]
    rows = nonempty(rows, "several block sizes of one width")
    keys = ["target_width", "dtype", "block"]
    drawn = rows.groupby(keys, as_index=False)["max_abs_error"].median()
    colors = shades(sorted(drawn["target_width"].unique()), "#d98fb5", DEEP.color, "#3d0b28")
    for (d, dtype), of in drawn.groupby(["target_width", "dtype"]):
        dotted = {"linestyle": DOTTED} if dtype == "mpmath" else {}
        Look(colors[d], "D").line(axes, of["block"], place(of["max_abs_error"]), **dotted)
    light, *middle = map(str, colors)
    order = ", ".join([f"{light} (light)", *middle[:-1], *(f"{d} (dark)" for d in middle[-1:])])
    text = {"transform": axes.transAxes, "linespacing": 1.2}
    DEEP.name(axes, 0.62, 0.55, f"double precision:\nd = {order}", **text)
    digits = rows[rows["dtype"] == "mpmath"]
    if len(digits):
        worst = digits["max_abs_error"].max()
        power = int(np.ceil(np.log10(worst))) if 0 < worst < 1 else 0
        last = digits["block"].max() + 0.4
        DEEP.name(axes, last, float(place(0.0)), f"100 digits: below 10$^{{{power}}}$", ha="left")
    ticks(axes.xaxis, sorted(rows["block"].unique()))
    return drawn


def _shares(tables: Tables) -> pd.DataFrame:
    """The share of full rank by d and p, with p over log d / d. Raises NoRows without any."""
    share = nonempty(full_rank_by_sparsity(tables["metrics"]), "sparse networks at m = d²")
    unit = np.log(share["target_width"]) / share["target_width"]
    return share.assign(scaled=share["sparsity"] / unit)


def say_sparse(tables: Tables) -> str:
    """How many are exact at twice and at three times log d / d."""
    share = _shares(tables)
    two, three = (
        100 * nonempty(share[share["scaled"].round(1) == at], f"p = {at} log d / d")["fraction"]
        for at in (2, 3)
    )
    return (
        f"{two.min():.0f} to {two.max():.0f} % of sparse frozen networks are exact at p ="
        f" 2 log d / d, {int(three.min())} % or more at 3 log d / d, as conjectured; the proof asks"
        " for 2 √(log d / d)"
    )


def draw_sparse(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """The share of full rank against p, in the conjecture's scale and in the proof's."""
    from runner.papers.norm_tuning.theory import live_units_probability  # late: torch

    share = _shares(tables)
    widths = sorted(share["target_width"].unique())
    colors = shades(widths, "#8fd19e", "#2f9e5c", "#00441b")
    picture, ((left, right),) = sheet(sharey=True)
    p = np.linspace(0.01, 1, 400)
    for d, color in colors.items():
        look, found = Look(color, "s", width=1.4), share[share["target_width"] == d]
        unit = np.log(d) / d
        closed = np.array([live_units_probability(d, d, d**2, each) for each in p])
        for axes, measure in ((left, unit), (right, np.sqrt(unit))):
            look.line(axes, p / measure, closed, marker="")
            look.line(axes, found["sparsity"] / measure, found["fraction"], linestyle="")
        if d in (widths[0], widths[-1]):
            away = ("left", 0.07) if d == widths[0] else ("right", -0.07)
            half = np.interp(0.5, closed, p) / np.sqrt(unit)
            look.name(right, half + away[1], 0.5, f"d = {d}", ha=away[0])
    guide(right, [2, 2], [0, 1.05])
    Look("#6b6b6b").name(right, 1.95, 0.22, "the proof's\nsmallest p", ha="right")
    CONSTRUCTION.name(left, 2.5, 0.5, f"d = {widths[0]} (light)\nto {widths[-1]} (dark)", ha="left")
    left.set(xlim=(0, 4.4), ylim=(-0.03, 1.05))
    right.set_xlim(0, 2.2)
    panel(left, "a", "share that is exact", "share of weights p / (log d / d)")
    panel(right, "b", "the same", "share of weights p / √(log d / d)")
    return picture, share.drop(columns="scaled")


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the error of each replicate against what rounding allows."""
    metrics = tables["metrics"]
    picture, ((axes,),) = sheet(1, 1, height=3.4, right=2.2)
    axes.set_yscale("log")
    first = metrics.iloc[0]
    look = THEOREMS.get(first["theorem"], CONSTRUCTION)
    look.line(axes, metrics["replicate"], metrics["max_abs_error"], linestyle="")
    FORBIDDEN.line(axes, metrics["replicate"], metrics["rounding"], linestyle="", marker="_")
    ends = [(metrics["rounding"].iloc[-1], "what rounding allows", FORBIDDEN)]
    name_ends(axes, [*ends, (metrics["max_abs_error"].iloc[-1], "largest |f − g|", look)])
    title = f"{first['theorem']}, d = {first['target_width']}, {first['target']} target"
    panel(axes, "a", title, "replicate")
    columns = ["max_abs_error", "agreement", "condition_number", "equations", "numerical_rank"]
    return picture, metrics[["replicate", *columns, "structural_rank"]]


HEADLINE = ["max_abs_error", "agreement", "condition_number", "numerical_rank"]

FIGURES = [
    Drawing(
        "constructions",
        draw_constructions,
        whose="as in the paper",
        findings=[
            Finding(
                say_exact,
                holds=[
                    *("wide-exact", "low-rank-exact", "deep-exact", "sparse-exact"),
                    "deep-exact-with-digits",
                ],
            )
        ],
        caption="Largest difference |f(x) − g(x)| of a constructed network and its random target"
        " at points of the unit sphere. (a) Every network whose systems have full rank, in double"
        " precision, against what rounding allows: n equations times machine epsilon times the"
        " condition number of K; shaded: more than that. (b) Theorem 2 by block size k: in double"
        " precision, whatever the rank, and, dotted, with 100 digits. Lines are medians over the"
        " replicates. What is below 1e-16 lies on the rail.",
        shows={"theorem": ["wide", "low_rank", "deep", "sparse"]},
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
