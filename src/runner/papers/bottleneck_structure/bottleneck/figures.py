"""Draw figure 1 of paper D, the comparison of training procedures, and the preview of one run."""

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from runner.papers.bottleneck_structure.bottleneck.tables import (
    RANK,
    ZERO,
    at_ridge,
    deep,
    with_ranges,
)
from runner.papers.bottleneck_structure.looks import draw_spectra, rank_look
from runner.papers.bottleneck_structure.names import NAMES
from runner.results import style
from runner.results.curves import curves
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.rows import NoRows, Tables, nonempty, select
from runner.results.style import GREY, INK, PLAIN, QUIET, SMALL

RECIPES = {recipe: NAMES["recipe"][recipe] for recipe in ("plain", "minimum", "annealed")}
"""Names and looks of the training procedures, in the order in which they are drawn."""

COLUMNS = ("minimum", "annealed", "plain")
"""The training procedures in the columns of figure 1."""

ANNEALED = "weight decay 0 for 200 steps, then up to 5 λ, and λ in the last 40 % of the steps"
"""How annealed training changes the weight decay."""


def _from_depth(metrics: pd.DataFrame) -> str:
    """Return words that name the smallest drawn depth, or an empty text if all depths are drawn."""
    first = deep(metrics)["depth"].min()
    return f", from depth {first} on" if first > metrics["depth"].min() else ""


def _minima(tables: Tables) -> pd.DataFrame:
    """Return the best solution found at each depth."""
    return deep(select(tables["metrics"], recipe="minimum"))


def say_slope(tables: Tables) -> str:
    """Return the headline of figure 1: rank and slope of best solutions; training ends at zero.

    Its number is the median rank at the largest depth. Raises NoRows unless most networks of
    ordinary training are zero from some depth on.
    """
    best = _minima(tables)
    rank = int(best.loc[best["depth"] == best["depth"].max(), "rank"].median())
    nonempty(collapsed(tables["metrics"]), "depth from which ordinary training collapses")
    return (
        f"The best deep networks have rank {rank}, and a layer adds nearly {rank} to ‖θ‖²; ordinary"
        " training makes them zero"
    )


def _norms(axes: Axes, networks: pd.DataFrame, all_depths: pd.Series) -> None:
    """Draw ‖θ‖² by depth, one task in bold; crosses are networks that do not fit the data.

    Colored lines join the networks of a range of equal rank, grey ones the ranges of a task. Marks
    below the task's rank are moved to the left. networks: those of one recipe. all_depths: the
    depths of all recipes.
    """
    first, shallow, last = networks["replicate"].min(), all_depths.min(), all_depths.max()
    fitting = with_ranges(networks)
    failed = networks.drop(fitting.index)
    axes.plot(failed["depth"], failed["parameter_norm"], "x", color=INK, ms=4, mew=1)
    points = fitting[["depth", "parameter_norm"]]
    for before, after in pairwise(fitting.index):
        replicate = fitting["replicate"][after]
        if fitting["replicate"][before] == replicate and (
            fitting["range"][before] != fitting["range"][after]
        ):
            width = 2.0 if replicate == first else 0.7
            axes.plot(*points.loc[[before, after]].to_numpy().T, color=GREY, lw=width, zorder=1.5)
    for (replicate, rank, _), rows in fitting.groupby(["replicate", "rank", "range"]):
        look, bold = rank_look(rank), replicate == first
        size = {"markersize": 5.5} if bold else {"markersize": 3.5, "linewidth": 0.9, "alpha": 0.6}
        depths = rows["depth"] - 0.3 * (rank < RANK)
        look.line(axes, depths, rows["parameter_norm"], zorder=3 + bold, **size)
    axes.set_xlim(shallow - 0.5 - 0.2 * (last - shallow), last + 0.5 + 0.04 * (last - shallow))
    _name_ranks(axes, fitting)
    words, named = "no fit:\n", -np.inf
    for depth, rows in failed.groupby("depth"):
        if depth - named >= (last - shallow) / 6:  # closer labels would overlap
            text = f"{words}{len(rows)}/{(networks['depth'] == depth).sum()}"
            near = {"textcoords": "offset points", "size": SMALL, "xytext": (0, 6), "va": "bottom"}
            near |= {"ha": "right", "xytext": (10, 6)} if words else {}  # away from the next label
            PLAIN.name(axes, depth, 0, text, **near)  # few networks that fit are near zero
            words, named = "", depth


def _slopes(axes: Axes, norms: pd.Series, last: int) -> None:
    """Draw the paper's slopes 2 and 3 as dotted guides below the best solutions."""
    for slope, ends, height in ((2, (0.45, 1), 0.65), (3, (0.2, 0.4), 0.59)):
        L = last * np.array(ends)
        y = norms.min() * height + slope * (L - last * 0.2)
        style.guide(axes, L, y)
        side = {"ha": "right" if slope == 2 else "left", "size": SMALL}
        QUIET.name(axes, L[1], y[0], f"slope {slope}", **side)


def _ticks(shown: list[int], depths: pd.Series) -> list[int]:
    """Return the depths on an axis of depths: the shown ones, the largest, and others between.

    shown: the depths of the lower row. depths: all depths.
    """
    kept = {*shown, int(depths.max())}
    apart = (depths.max() - depths.min()) / 7  # closer labels would overlap
    for depth in sorted({*map(int, depths)}):
        if min(abs(depth - other) for other in kept) >= apart:
            kept.add(depth)
    return sorted(kept)


def _name_ranks(axes: Axes, networks: pd.DataFrame) -> None:
    """Write the ranks of some networks into the upper left corner, each next to its marker."""
    for row, rank in enumerate(sorted(networks["rank"].unique())):
        look, height = rank_look(rank), 0.96 - 0.08 * row
        look.line(axes, 0.06, height, transform=axes.transAxes, markersize=5.5)
        look.note(axes, 0.1, height, f"rank {rank}", weight="bold", va="center")


def _spectra(panels: np.ndarray, shown: list[int], task: pd.DataFrame, spectrum: pd.DataFrame):
    """Draw the singular values of networks of one task, one panel for each depth.

    task: the networks of one recipe and task. spectrum: the singular values of all networks.
    """
    ranks = task.set_index("depth")["rank"]
    task = select(spectrum, recipe=task["recipe"].iloc[0], replicate=task["replicate"].iloc[0])
    for axes, depth in zip(panels, shown, strict=True):
        axes.axhline(1, color=GREY, linewidth=1, linestyle=QUIET.dashes, zorder=1)
        axes.set_xlabel(f"$L$ = {depth}", size=SMALL)
        style.ticks(axes.xaxis, [1, depth])
        axes.tick_params(left=axes is panels[0], labelleft=axes is panels[0])
        axes.spines["left"].set_visible(axes is panels[0])
        with or_empty(axes):
            rows = nonempty(task[task["depth"] == depth], "network of this depth")
            draw_spectra(axes, rows, int(ranks[depth]), thick=1.8)
            if not ranks[depth]:
                QUIET.note(axes, 0.5, 0.2, "all\nzero", ha="center")
    drawn = task[task["depth"].isin(shown)]["singular_value"]
    for axes in panels:
        axes.set_ylim(0, 1.08 * np.nanmax([drawn.max(), 1.25]))
        style.ticks(axes.yaxis, [0, 0.5, 1, 1.5, 2])


def draw_bottleneck(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 1 of paper D: ‖θ‖² by depth, and singular values by layer at three depths.

    The columns of panels are the best solutions found, annealed and ordinary training. The singular
    values are drawn for one task. Returns the picture and the table `metrics`.
    """
    metrics = tables["metrics"]
    present = [recipe for recipe in COLUMNS if (metrics["recipe"] == recipe).any()]
    by = {recipe: deep(select(metrics, recipe=recipe)) for recipe in present}
    every = pd.concat(by.values())
    common = set.intersection(*(set(rows["depth"]) for rows in by.values())) or {
        every["depth"].iloc[0]
    }
    three = np.quantile(sorted(common), np.linspace(0, 1, 3), method="nearest")
    shown = sorted(set(map(int, three)))
    picture = style.canvas(5.2)
    columns = np.atleast_1d(picture.subfigures(1, len(present)))
    top = 1.2 * np.nanmax([every["parameter_norm"].max(), 1])
    for number, (part, (recipe, rows)) in enumerate(zip(columns, by.items(), strict=True)):
        above, below = part.subfigures(2, 1, height_ratios=[1.35, 1])
        norm = above.subplots()
        _norms(norm, rows, every["depth"])
        norm.set_ylim(-0.03 * top, top)
        if recipe == "minimum" and len(common) > 2:
            _slopes(norm, rows["parameter_norm"], rows["depth"].max())
        style.ticks(norm.xaxis, _ticks(shown, every["depth"]))
        norm.set_title(" ")
        style.panel(norm, "abc"[number], f"‖θ‖², {RECIPES[recipe].printed}", "depth $L$")
        widths = [depth + 4 for depth in shown]
        (panels,) = below.subplots(1, len(shown), width_ratios=widths, squeeze=False)
        task = rows[rows["replicate"] == rows["replicate"].min()]
        with or_empty(panels[0], *panels[1:]):
            _spectra(panels, shown, task, tables["spectrum"])
        panels[0].set_title(" ")
        letter = "abcdef"[number + len(present)]
        style.panel(panels[0], letter, "singular values by layer", panels[0].get_xlabel())
        if not number:
            QUIET.note(panels[-1], 0.5, 0.07, "all others", ha="center")
    return picture, metrics


LEAST = 0.1
"""Losses up to this percentage above the best solution's loss are below the axis."""


def losses_above(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return how far each loss is above the best loss found at its depth, in percent.

    There is a row for each trained network, with the column `above`. Raises NoRows without best
    solutions.
    """
    keys = ["depth", "replicate"]
    least = select(metrics, recipe="minimum").set_index(keys)["loss"].rename("least")
    rows = at_ridge(metrics)
    rows = rows[rows["recipe"] != "minimum"].join(least, on=keys).dropna(subset="least")
    above = 100 * (rows["loss"] / rows["least"] - 1)
    return nonempty(rows.assign(above=above), "network next to the best solution")


def collapsed(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks of ordinary training from the depth on at which most networks are zero.

    Raises NoRows without ordinary training.
    """
    plain = select(metrics, recipe="plain")
    medians = plain.groupby("depth")["parameter_norm"].median()
    alive = medians.index[~(medians < ZERO)]
    return plain[plain["depth"] > alive.max()] if len(alive) else plain


def _medians_above(metrics: pd.DataFrame) -> pd.Series:
    """Return by depth the medians of annealed training's loss above the best loss, in percent.

    Depths up to the last one at which the median is below the best loss are excluded. Raises NoRows
    if annealed training was not run, or if no depth remains.
    """
    rows = select(deep(losses_above(metrics)), recipe="annealed")
    medians = rows.groupby("depth")["above"].median()
    better = below_best(metrics).index
    medians = medians[medians.index > better.max()] if len(better) else medians
    nonempty(medians.reset_index(), "depth with a larger loss")
    return medians


def say_above(tables: Tables) -> str:
    """Return the headline: how far annealed training's loss is above the best loss, in percent.

    Its numbers are the smallest and the largest of `_medians_above`. The headline also says that
    ordinary training collapses. Raises NoRows if a recipe was not run, if no depth remains, or if
    ordinary training does not collapse.
    """
    medians = _medians_above(tables["metrics"])
    rows = deep(losses_above(tables["metrics"]))
    nonempty(collapsed(rows), "depth from which ordinary training collapses")
    is_late = len(below_best(tables["metrics"])) > 0
    start = f"From depth {medians.index[0]} annealed" if is_late else "Annealed"
    return (
        f"{start} training ends {medians.min():.0f} to {medians.max():.0f} % above the best loss"
        " (medians); ordinary training of deep networks collapses"
    )


def below_best(metrics: pd.DataFrame) -> pd.Series:
    """Return by depth the medians of annealed training that are below the best solution's loss.

    They are in percent of this loss, and negative.
    """
    rows = deep(losses_above(metrics))
    medians = rows[rows["recipe"] == "annealed"].groupby("depth")["above"].median()
    return medians[medians < 0]


def _by_recipe(axes: Axes, metrics: pd.DataFrame, column: str, place=np.asarray) -> None:
    """Draw a column by depth: every network, and the medians over the tasks for each recipe.

    place: returns the heights of values.
    """
    columns = "depth", column, "recipe", RECIPES.__getitem__
    options: Any = {"replicates": "dots", "height": place, "first": RECIPES}
    style.name_ends(axes, curves(axes, metrics, *columns, **options))


def _number_extremes(axes: Axes, metrics: pd.DataFrame, place: Callable) -> None:
    """Write the headline's numbers below the dots of their depths.

    If a dot is off the axis, its number stands beside the median. place: returns the heights of
    values.
    """
    with suppress(NoRows):
        medians = _medians_above(metrics)
        rows = select(losses_above(metrics), recipe="annealed")
        below: dict = {"textcoords": "offset points", "xytext": (1, -12), "size": SMALL}
        aside = below | {"xytext": (9, -5)}
        for depth in {medians.idxmin(), medians.idxmax()}:
            lowest = rows.loc[rows["depth"] == depth, "above"].min()
            at, away = (lowest, below) if lowest > LEAST else (medians[depth], aside)
            words = f"{medians[depth]:.0f}\u00a0%"
            RECIPES["annealed"].look.name(axes, depth, float(place(at)), words, ha="left", **away)


def draw_recipes(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw by depth the rank after training (a), and the loss above the best solution found (b).

    Lines are medians for each recipe, dots networks. Returns the picture and the networks.
    """
    metrics = at_ridge(tables["metrics"])
    networks = deep(metrics)
    picture, ((left, right),) = style.sheet(gap=2.0, right=1.1)
    depths = sorted(networks["depth"].unique())
    for axes in (left, right):
        room = max(0.7, 0.06 * (depths[-1] - depths[0]))
        axes.set_xlim(depths[0] - room, depths[-1] + room)
        style.ticks(axes.xaxis, depths[:: -(-len(depths) // 7)])
    left.set_ylim(-0.3, networks["rank"].max() + 0.6)
    left.yaxis.set_major_locator(MaxNLocator(7, integer=True))
    style.level(left, RANK)
    label_style: dict[str, Any] = {"textcoords": "offset points", "size": SMALL}
    words = f"task:\nrank {RANK}"  # short, since lines may fall from rank 2 at larger depths
    QUIET.name(left, depths[0], RANK, words, xytext=(-6, -20), ha="left", **label_style)
    _by_recipe(left, networks, "rank")
    with or_empty(right):
        above = deep(losses_above(metrics))
        shown = above.loc[above["above"] > LEAST, "above"]
        is_off = len(shown) < above["above"].notna().sum()  # as good as the best solution
        low, high = LEAST if is_off else shown.min() / 2, 5 * shown.max()
        right.set(yscale="log", ylim=(low, high))
        place = style.rail(right, low, high, f"≤ {LEAST:g}\u00a0%") if is_off else np.asarray
        steps = (1,) if high / low > 1000 else (1, 2, 5)
        percents = [y * k for y in (0.1, 1, 10, 100, 1000) for k in steps if low <= y * k <= high]
        style.ticks(right.yaxis, percents, [f"{y:,g}\u00a0%" for y in percents])
        _by_recipe(right, above, "above", place)
        _number_extremes(right, metrics, place)
        for depth, value in below_best(metrics).items():
            words = f"{value:.1f} %: below the best".replace("-", "−")
            aside = {"xytext": (9, 0), "ha": "left"}
            RECIPES["annealed"].look.name(
                right, depth, float(place(value)), words, **label_style | aside
            )
        zero = collapsed(above)
        if len(zero):
            label_style |= {"xytext": (0, 13), "ha": "right"}
            highest = above["above"].max()
            median = "median: " if (zero["parameter_norm"] >= ZERO).any() else ""
            words = f"{median}all weights zero"
            QUIET.name(right, zero["depth"].max(), highest, words, **label_style)
    style.panel(left, "a", "rank of the middle layer", "depth L")
    style.panel(right, "b", "loss above best solution found", "depth L")
    return picture, metrics


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run: figure 1 for its networks.

    Returns the picture, and a table with a row for each depth and replicate.
    """
    picture, metrics = draw_bottleneck(tables)
    return picture, metrics[["depth", "replicate", *HEADLINE, "loss", "rank_gap"]]


def caption_bottleneck(tables: Tables) -> str:
    """Return the caption of figure 1, which names the columns that are drawn."""
    metrics = tables["metrics"]
    words = {
        "minimum": f"best solutions found{_from_depth(metrics)}{_better(tables)}",
        "annealed": f"networks after annealed training ({ANNEALED})",
        "plain": "networks after ordinary training (weight decay λ)",
    }
    columns = [text for recipe, text in words.items() if (metrics["recipe"] == recipe).any()]
    return (
        f"The columns show {'; '.join(columns)}. The first row shows the squared norm ‖θ‖² of the"
        " parameters; one task is bold, the others are pale. Colors are ranks, grey lines join"
        " networks of different rank, and crosses are networks that do not fit. The second row"
        " shows the singular values of the weights for the bold task: the largest ones as lines,"
        " all others as a band."
    )


def _better(tables: Tables) -> str:
    """Return words about depths at which training ends below the best solution found.

    They name these depths, and in how many tasks training ends lower at one of them. They are empty
    if there are none, or if no trained network has the depth of a best solution.
    """
    try:
        rows = deep(losses_above(tables["metrics"]))
    except NoRows:
        return ""
    lower = rows[rows["above"] < -LEAST]
    tasks = f"{lower['replicate'].nunique()} of {rows['replicate'].nunique()} tasks"
    depths = ", ".join(map(str, sorted(lower["depth"].unique())))
    return f" (at depth {depths} training ends lower in {tasks})" if depths else ""


CAPTION = caption_bottleneck
"""Caption of the preview."""

HEADLINE = ["parameter_norm", "train_cost", "test_cost", "rank"]

FIGURES = [
    Drawing(
        "bottleneck-fig1",
        draw_bottleneck,
        whose="as in the paper",
        findings=[Finding(say_slope, holds=["slope-tends-to-rank", "singular-values"])],
        caption=caption_bottleneck,
        shows={"recipe": ["minimum", "annealed", "plain"]},
    ),
    Drawing(
        "bottleneck-recipes",
        draw_recipes,
        unread=("representation", "spectrum", "theorems"),
        findings=[Finding(say_above, holds=["training-fails-deep"])],
        marks="lines: medians, dots: tasks",
        caption=lambda tables: (
            f"(a) shows the rank of the middle layer by depth{_from_depth(tables['metrics'])}; the"
            " dotted line is the rank of the task. (b) shows by how much the loss is above that of"
            f" the best solution found{_better(tables)}. Ordinary training has weight decay λ."
            f" Annealed training has {ANNEALED}."
        ),
        shows={"recipe": ["minimum", "annealed", "plain"]},
    ),
]
