"""Draw the figure of study `annealing`, which is also its preview."""

from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck_structure.annealing.tables import fitting
from runner.results.curves import curves
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.looks import DASHED, GREY, Look, Name
from runner.results.rows import NoRows, Tables, nonempty, select
from runner.results.style import name_ends, panel, sheet, ticks

ANNEALED = "#7a3c8f"
"""Color of annealed training, as in figure `bottleneck-recipes`."""

ARM = ["recipe", "gain"]
"""Columns that identify a training procedure and its initial weights."""

LARGE = 1.2
"""Gain of annealed training in figure `bottleneck-recipes`. Smaller gains have hollow marks."""


HEIGHTS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)
"""Values at which the logarithmic axes have ticks."""


def arm(values: tuple[str, float]) -> Name:
    """Return name and look of a recipe with a gain: annealed is purple, a small gain is hollow."""
    recipe, gain = values
    small = gain < LARGE
    color, marker = (ANNEALED, "D") if recipe == "annealed" else (GREY, "o")
    look = Look(color, marker, DASHED if small else "-", 1.6, hollow=small, size=6 if small else 7)
    word = "annealed" if recipe == "annealed" else "λ throughout"
    return Name(f"{word},\ngain {gain:g}", look)


def counted(metrics: pd.DataFrame) -> pd.Series:
    """Return how many networks fit, by recipe, gain and depth."""
    return fitting(metrics).groupby([*ARM, "depth"])["fits"].sum()


def say_depths(tables: Tables) -> str:
    """Return the headline: how many networks of the largest depth fit, from the larger weights.

    Raises NoRows unless both recipes were run with the gain LARGE.
    """
    metrics = tables["metrics"]
    deepest, tasks = metrics["depth"].max(), metrics["replicate"].nunique()
    counts = counted(metrics)
    try:
        annealed, constant = (counts[recipe, LARGE, deepest] for recipe in ("annealed", "constant"))
    except KeyError:
        raise NoRows("one of the two training procedures is missing") from None
    return (
        f"From equal weights of gain {LARGE}, {annealed} of {tasks} networks of depth {deepest} fit"
        f" after annealed training and {constant} with weight decay λ throughout"
    )


def loss_above(metrics: pd.DataFrame) -> pd.Series:
    """Return by depth how far λ throughout ends above annealed training's loss, in percent.

    Medians of tasks in which both fit, from initial weights of gain LARGE. Raises NoRows if there
    are none.
    """
    rows = fitting(metrics).query("fits and gain == @LARGE")
    losses = rows.pivot(index=["depth", "replicate"], columns="recipe", values="loss")
    both = losses.reindex(columns=["annealed", "constant"]).dropna()
    nonempty(both, "depth at which both fit")
    return 100 * (both["constant"] / both["annealed"] - 1).groupby("depth").median()


def say_loss(tables: Tables) -> str:
    """Return the headline: the smallest and the largest median of `loss_above`.

    Raises NoRows as `loss_above`.
    """
    above = loss_above(tables["metrics"])
    return (
        f"From equal weights of gain {LARGE}, training with λ throughout ends {above.min():.0f} to"
        f" {above.max():.0f} % above annealed training's loss"
    )


def _number_losses(axes: Axes, metrics: pd.DataFrame) -> None:
    """Write the numbers of `say_loss` above the marks of their depths."""
    with suppress(NoRows):
        above = loss_above(metrics)
        rows = select(metrics, recipe="constant", gain=LARGE)
        for depth in {above.idxmin(), above.idxmax()}:
            aside = 7 if depth < rows["depth"].median() else -5  # away from the axes' ends
            spot: dict[str, Any] = {"textcoords": "offset points", "xytext": (aside, 16)}
            height = rows.loc[rows["depth"] == depth, "loss"].median()
            words = f"{above[depth]:.0f}\u00a0%".replace("-", "−")
            arm(("constant", LARGE)).look.name(axes, depth, height, words, **spot)


def _number_deepest(axes: Axes, counts: pd.Series, depth: int) -> None:
    """Write the headline's numbers at their marks."""
    for recipe, away in (("annealed", -12), ("constant", 12)):
        if (count := counts.get((recipe, LARGE, depth))) is not None:
            spot: dict[str, Any] = {"textcoords": "offset points", "xytext": (0, away)}
            arm((recipe, LARGE)).look.name(axes, depth, count, str(count), **spot)


def draw_annealing(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw by depth how many networks fit (a), the loss (b), and the error on new points (c).

    Returns the picture, and the table `metrics` with the column `fits`.
    """
    metrics = fitting(tables["metrics"])
    counts = counted(metrics)
    picture, ((a, b, c),) = sheet(1, 3, gap=0.75, right=1.25, top=0.5, height=3.9)
    depths, most = sorted(metrics["depth"].unique()), metrics["replicate"].nunique()
    for axes in (a, b, c):
        room = max(0.7, 0.08 * (depths[-1] - depths[0]))
        axes.set_xlim(depths[0] - room, depths[-1] + room)
        ticks(axes.xaxis, depths)
    a.set_ylim(-0.12 * most, 1.12 * most)
    a.yaxis.get_major_locator().set_params(integer=True)
    with or_empty(a, b, c):
        curves(a, counts.reset_index(), "depth", "fits", ARM, arm)
        _number_deepest(a, counts, depths[-1])
        for axes, column in ((b, "loss"), (c, "test_cost")):
            axes.set_yscale("log")
            ends = curves(axes, metrics, "depth", column, ARM, arm, replicates="dots")
            drawn = metrics[column][np.isfinite(metrics[column])]
            if len(drawn):
                axes.set_ylim(0.75 * drawn.min(), 1.5 * drawn.max())
            ticks(axes.yaxis, HEIGHTS, [f"{height:g}" for height in HEIGHTS])
        name_ends(c, ends)
        _number_losses(b, metrics)
    panel(a, "a", f"fits, of {most}", "depth L")
    panel(b, "b", "loss", "depth L")
    panel(c, "c", "error on new points", "depth L")
    return picture, metrics


HEADLINE = ["train_cost", "loss", "rank"]

FIGURES = [
    Drawing(
        "bottleneck-annealing",
        draw_annealing,
        whose="ours",
        marks="lines: counts (a), medians (b, c), dots: tasks",
        findings=[
            Finding(say_depths, holds=["annealing-fits-deeper"]),
            Finding(say_loss, holds=["annealing-lowers-loss"]),
        ],
        caption="Networks learn figure 1's task with annealed weight decay (none for 200 steps,"
        " then up to 5 λ, at last λ) or with λ from the first step, from the same initial weights"
        " N(0, gain²/fan-in) and with the same learning rate. (a) shows how many fit (training"
        " error below 0.1), (b) the loss, and (c) the error on new points. A network that is zero"
        " has loss 1. Percentages compare λ throughout with annealed training, gain 1.2, where both"
        " fit.",
    ),
]

overview = draw_annealing
