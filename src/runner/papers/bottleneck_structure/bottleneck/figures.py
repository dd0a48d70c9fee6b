"""Drawings of paper D's figure 1, of our recipes next to it, and the preview of one run."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from runner.papers.bottleneck_structure.bottleneck.tables import FITTED, at_ridge, successive_slopes
from runner.papers.bottleneck_structure.looks import EDGE, draw_spectra, rank_look
from runner.results import style
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import nonempty, select
from runner.results.style import GREY, INK, PLAIN, QUIET, SMALL, Look

RECIPES = {"plain": Look(EDGE, "o"), "annealed": Look("#7a3c8f", "D"), "minimum": Look(INK, "s")}
"""Ridge from the start; fit, press the rank down, relax; the lowest loss found of each depth."""


def _minima(tables: Tables) -> pd.DataFrame:
    """Return the lowest loss that was found of each depth, from depth 6 on if there is one."""
    best = select(tables["metrics"], recipe="minimum")
    deep = best[best["depth"] >= 6]
    return deep if len(deep) else best


def say_slope(tables: Tables) -> str:
    """Say the rank of the deepest minima, and what a layer adds."""
    best = _minima(tables)
    deepest = best[best["depth"] == best["depth"].max()]
    rank = int(deepest["rank"].median())
    steps = select(successive_slopes(best), rank=rank).sort_values("last")
    last = steps.groupby("replicate")["slope"].last()
    return (
        f"Deep minima have the task's rank, {rank}; at depth {deepest['depth'].iloc[0]} a layer"
        f" adds {last.min():.2f} to {last.max():.2f} to the loss (in λ), which tends to the rank"
    )


def _norms(axes: Axes, best: pd.DataFrame, plain: pd.DataFrame) -> None:
    """The lowest loss of each depth, one task bold; hollow: plain training, crosses where it ended
    at zero."""
    dead = plain[plain["train_cost"] >= FITTED * 9]
    alive = plain.drop(dead.index)
    for rows, marker, color, size in ((alive, "o", EDGE, 3.5), (dead, "x", INK, 4.5)):
        look = {"color": color, "ms": size, "mfc": "none", "mew": 1, "zorder": 2, "clip_on": False}
        axes.plot(rows["depth"], rows["parameter_norm"], marker, **look)
    first = best["replicate"].min()
    for (replicate, rank), rows in best.sort_values("depth").groupby(["replicate", "rank"]):
        look, bold = rank_look(rank), replicate == first
        size = {"markersize": 5.5} if bold else {"markersize": 2.2, "linewidth": 0.9, "alpha": 0.45}
        look.line(axes, rows["depth"], rows["parameter_norm"], zorder=3 + bold, **size)
    top = np.nanmax([best["parameter_norm"].max() * 1.3, 1])
    axes.set(ylim=(0, top), ylabel=r"$\|\theta\|^2$")
    for rank, rows in best.groupby("rank"):
        own = rows.groupby("depth")["parameter_norm"].max()
        place = {"ha": "center", "weight": "bold"}
        at, away = (own.index[-1], (-8, 13)) if rank == 2 else (own.index[0], (0, 13))
        rank_look(rank).name_at(axes, own.index, own, f"rank {rank}", at, away, **place)
    last, low = best["depth"].max(), best["parameter_norm"].min()
    guides = ((2, (0.45, 1), 0.65), (3, (0.2, 0.4), 0.59)) if last >= 20 else ()
    for slope, ends, height in guides:
        L = last * np.array(ends)
        y = low * height + slope * (L - last * 0.2)
        style.guide(axes, L, y)
        QUIET.name_at(axes, L, y, f"slope {slope}", L[1] * 0.85, (4, -10), size=SMALL)
    place, spot = {"textcoords": "offset points", "size": SMALL}, ["depth", "parameter_norm"]
    if len(alive):
        highest = alive[spot].sort_values("parameter_norm").iloc[-1]
        QUIET.name(axes, *highest, "plain training", xytext=(-4, 8), ha="left", **place)
    if len(dead):
        place |= {"xytext": (0, 12), "ha": "right"}
        PLAIN.name(axes, *dead[spot].max(), "plain training: zero", **place)


def _spectra(
    panels: np.ndarray, shown: list[int], own: pd.DataFrame, spectrum: pd.DataFrame
) -> None:
    """Panel (b): one task's networks of these depths, one to a panel."""
    networks = nonempty(own, "network of rank 1 or more").set_index("depth")
    for axes, depth in zip(panels, shown, strict=True):
        rows = select(spectrum, depth=depth, replicate=own["replicate"].iloc[0])
        draw_spectra(axes, rows, int(networks["rank"][depth]), thick=2)
        axes.axhline(1, color=GREY, linewidth=1, linestyle=QUIET.dashes, zorder=1)
        axes.set(ylim=(0, 1.85), xlabel=f"$L$ = {depth}")
        style.ticks(axes.xaxis, [1, depth])
        style.ticks(axes.yaxis, [0, 0.5, 1, 1.5])
        axes.tick_params(left=axes is panels[0], labelleft=axes is panels[0])
        axes.spines["left"].set_visible(axes is panels[0])
    deepest = networks.loc[shown[-1]]
    rank, middle = int(deepest["rank"]), (shown[-1] + 1) / 2
    if rank == deepest["rank_gap"]:
        words = {1: "one near 1", 2: "two near 1", 3: "three near 1"}.get(rank, f"{rank} near 1")
        rank_look(rank).name(axes, middle, 1.27, words, weight="bold")
        QUIET.name(axes, middle, 0.1, f"{int(deepest['width']) - rank} others ≈ 0", size=SMALL)


def draw_bottleneck(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 1 of paper D: norm against depth, and spectra of four depths of one task."""
    metrics, best = tables["metrics"], _minima(tables)
    plain = metrics[(metrics["recipe"] == "plain") & (metrics["depth"] >= best["depth"].min())]
    own = best[(best["replicate"] == best["replicate"].min()) & (best["rank"] > 0)]
    four = np.quantile(own["depth"], np.linspace(0, 1, 4), method="nearest") if len(own) else [1]
    shown = sorted(set(map(int, four)))  # all where they are fewer
    picture = style.canvas(3.6)
    left, right = picture.subfigures(1, 2, width_ratios=[1, 1.45])
    norm = left.subplots()
    _norms(norm, best, plain)
    norm.set_xlim(best["depth"].min() - 3.6, best["depth"].max() + 1)
    norm.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    norm.set_title(" ")
    style.panel(norm, "a", "norm against depth", "depth $L$")
    widths = [depth + 2.2 for depth in shown]
    (panels,) = right.subplots(1, len(shown), width_ratios=widths, squeeze=False)
    with or_empty(panels[0], *panels[1:]):
        _spectra(panels, shown, own, select(tables["spectrum"], recipe="minimum"))
    panels[0].set_title(" ")
    panels[0].set_ylabel(r"singular values of $W_\ell$")
    style.panel(panels[0], "b", "singular values: only the middle grows", panels[0].get_xlabel())
    right.supxlabel(r"layer $\ell$ of networks of depth $L$", size=SMALL + 1)
    return picture, metrics


def losses_above(metrics: pd.DataFrame) -> pd.DataFrame:
    """By recipe, depth and replicate: how far a loss is above the lowest that was found, in percent
    of that. Raises NoRows without the lowest."""
    keys = ["depth", "replicate"]
    least = select(metrics, recipe="minimum").set_index(keys)["loss"].rename("least")
    rows = at_ridge(metrics)
    rows = rows[rows["recipe"] != "minimum"].join(least, on=keys).dropna(subset="least")
    above = 100 * (rows["loss"] / rows["least"] - 1)
    return nonempty(rows.assign(above=above), "recipe beside the lowest loss")


def say_above(tables: Tables) -> str:
    """Say how far above the lowest loss Adam ends, at the first depth and at the last."""
    rows = select(losses_above(tables["metrics"]), recipe="annealed")
    medians = rows.groupby("depth")["above"].median()
    return (
        "Plain training of the deepest networks ends at zero; annealed ones end above the lowest"
        f" loss: by {medians.iloc[0]:.0f} % at depth {medians.index[0]}, by"
        f" {medians.iloc[-1]:.0f} % at depth {medians.index[-1]}"
    )


def _by_recipe(axes: Axes, metrics: pd.DataFrame, column: str) -> None:
    """Every network, and for each recipe the medians over the tasks, with its name."""
    ends = []
    for recipe, look in RECIPES.items():
        rows = metrics[metrics["recipe"] == recipe]
        median = rows.groupby("depth")[column].median()
        look.each(axes, rows["depth"], rows[column])
        look.line(axes, median.index, median)
        text = "lowest loss\nfound" if recipe == "minimum" else recipe
        ends += [(height, text, look) for height in median.tail(1)]
    style.name_ends(axes, ends)


def draw_recipes(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Where our recipes end: the rank, and the loss above the lowest one."""
    metrics = at_ridge(tables["metrics"])
    picture, ((left, right),) = style.sheet(gap=1.75, right=0.95)
    for axes in (left, right):
        axes.set_xlim(metrics["depth"].min() - 0.5, metrics["depth"].max() + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    left.set_ylim(-0.3, metrics["rank"].max() + 0.6)
    left.yaxis.set_major_locator(MaxNLocator(7, integer=True))
    style.level(left, 2)
    _by_recipe(left, metrics, "rank")
    with or_empty(right):
        right.set(yscale="log", ylim=(0.1, 3000))
        percents = [0.1, 1, 10, 100, 1000]
        style.ticks(right.yaxis, percents, [f"{y:g} %" for y in percents])
        _by_recipe(right, losses_above(metrics), "above")
    style.panel(left, "a", "rank of the middle layer", "depth L")
    style.panel(right, "b", "loss above the lowest found", "depth L")
    return picture, metrics


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Preview of one run: figure 1 of its networks, whichever recipe trained them."""
    picture, metrics = draw_bottleneck(
        {name: rows.assign(recipe="minimum") for name, rows in tables.items()}
    )
    return picture, metrics[["depth", "replicate", *HEADLINE, "loss", "rank_gap"]]


STATISTIC = ""
"""Each replicate is drawn."""

HEADLINE = ["parameter_norm", "train_cost", "test_cost", "rank"]

FIGURES = [
    Drawing(
        "bottleneck-fig1",
        draw_bottleneck,
        whose="as in the paper",
        findings=[Finding(say_slope, holds=["slope-tends-to-rank", "rank-falls"])],
        caption="(a) Squared norm of all parameters against the depth L, from 6 on. Filled: the"
        " lowest loss that was found at each depth, one task bold, the others thin; squares have"
        " rank 3, circles rank 2. Hollow circles: plain training with ridge from the start;"
        " crosses: it ended at zero. Dotted: lines of slope 3 and 2. (b) Singular values of every"
        " layer of the bold task's networks of four depths; panels are as wide as the networks are"
        " deep. Lines are the first k values, k the rank of the middle layer, the number of its"
        " singular values above 0.1; the grey band is all from the next value down; dotted: one."
        " Inputs and targets are random functions of a Gaussian latent variable; the targets use"
        " two of its coordinates.",
        shows={"recipe": ["minimum", "annealed", "plain"]},
    ),
    Drawing(
        "bottleneck-recipes",
        draw_recipes,
        whose="ours: recipes of training",
        unread=("representation", "spectrum", "theorems"),
        findings=[Finding(say_above, holds=["training-fails-deep"])],
        caption="(a) Rank of the middle layer after training by each recipe: plain, with the ridge"
        " from the start; annealed, which fits first, then presses the rank down, then relaxes;"
        " and the lowest loss that was found at each depth; dotted: the task's rank. Lines are"
        " medians over the tasks, dots single tasks. (b) How far the loss, with its ridge, ends"
        " above the lowest that was found.",
        shows={"recipe": ["minimum", "annealed", "plain"]},
    ),
]
