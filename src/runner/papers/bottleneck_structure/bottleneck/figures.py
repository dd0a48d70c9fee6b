"""Draw figure 1 of paper D, the results of training, and the preview of one run."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from runner.papers.bottleneck_structure.bottleneck.tables import at_ridge
from runner.papers.bottleneck_structure.looks import draw_spectra, name_spectra, rank_look
from runner.results import style
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.rows import Tables, nonempty, select
from runner.results.style import DASHED, GREY, INK, PLAIN, QUIET, SMALL, Look

RECIPES = {
    "plain": ("ordinary\ntraining", Look(GREY, "o", DASHED, hollow=True)),
    "minimum": ("best solution\nfound", Look(INK, "s", hollow=True)),
    "annealed": ("annealed\ntraining", Look("#7a3c8f", "D", width=1.6)),
}
"""Names and looks of the training procedures and of the search."""

RANK = 2
"""Rank of the task."""

ZERO = 0.01
"""Squared norm below which a network counts as zero."""


def _deep(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks from depth 6 on, or all networks if none is so deep.

    Shallower networks have no bottleneck.
    """
    deep = metrics[metrics["depth"] >= 6]
    return deep if len(deep) else metrics


def _from_depth(metrics: pd.DataFrame) -> str:
    """Return a phrase that names the smallest depth that is drawn, or nothing if all are drawn."""
    first = _deep(metrics)["depth"].min()
    return f", from depth {first} on" * bool(first > metrics["depth"].min())


def _minima(tables: Tables) -> pd.DataFrame:
    """Return the best solution found at each depth."""
    return _deep(select(tables["metrics"], recipe="minimum"))


def say_slope(tables: Tables) -> str:
    """Return the headline: rank of the deepest solutions; a layer adds nearly this rank."""
    best = _minima(tables)
    rank = int(best.loc[best["depth"] == best["depth"].max(), "rank"].median())
    return (
        f"The deepest solutions have rank {rank}, as the task has, and each further layer adds"
        f" nearly {rank} to ‖θ‖²"
    )


def _norms(axes: Axes, best: pd.DataFrame, plain: pd.DataFrame) -> None:
    """Draw each depth's best solution, one task bold, and ordinary training with hollow markers.

    Crosses are networks that converged to zero.
    """
    dead = plain[plain["parameter_norm"] < ZERO]
    alive = plain.drop(dead.index)
    for rows, marker, color, size in ((alive, "o", GREY, 3.5), (dead, "x", INK, 4.5)):
        look = {"color": color, "ms": size, "mfc": "none", "mew": 1, "zorder": 2}
        axes.plot(rows["depth"], rows["parameter_norm"], marker, **look, clip_on=rows is alive)
    first = best["replicate"].min()
    for (replicate, rank), rows in best.sort_values("depth").groupby(["replicate", "rank"]):
        look, bold = rank_look(rank), replicate == first
        size = {"markersize": 5.5} if bold else {"markersize": 2.2, "linewidth": 0.9, "alpha": 0.45}
        look.line(axes, rows["depth"], rows["parameter_norm"], zorder=3 + bold, **size)
    norms = pd.concat([best["parameter_norm"], alive["parameter_norm"]])
    axes.set(ylim=(0, np.nanmax([norms.max() * 1.2, 1])), ylabel=r"$\|\theta\|^2$")
    shallow, last = best["depth"].min(), best["depth"].max()
    axes.set_xlim(shallow - 0.5 - 0.29 * (last - shallow), last + 0.5 + 0.04 * (last - shallow))
    _name_ranks(axes, best, alive)
    if best["replicate"].nunique() > 1:
        QUIET.note(axes, 0.03, 0.99, "bold: task of b", va="top")
    low = best["parameter_norm"].min()
    guides = ((2, (0.45, 1), 0.65), (3, (0.2, 0.4), 0.59)) if last >= 20 else ()
    for slope, ends, height in guides:
        if best.loc[best["rank"] == slope, "depth"].nunique() < 3:
            continue
        L = last * np.array(ends)
        y = low * height + slope * (L - last * 0.2)
        style.guide(axes, L, y)
        side = {"ha": "right" if slope == 2 else "left", "size": SMALL}
        QUIET.name(axes, L[1], y[0], f"paper: slope {slope}", **side)
    label_style, spot = {"textcoords": "offset points", "size": SMALL}, ["depth", "parameter_norm"]
    if len(alive):
        highest = alive[spot].sort_values("parameter_norm").iloc[-1]
        QUIET.name(axes, *highest, "ordinary training", xytext=(0, 9), **label_style)
    if len(dead):
        label_style |= {"xytext": (0, 12), "ha": "right"}
        PLAIN.name(axes, *dead[spot].max(), "ordinary training: zero", **label_style)


def _name_ranks(axes: Axes, best: pd.DataFrame, trained: pd.DataFrame) -> None:
    """Write each rank where its solutions begin, rank 2 where they end.

    Ranks that begin at one depth share one label. trained: networks that no label may cover.
    """
    ends = best.groupby("rank")["depth"].agg(["min", "max"])
    spots = ends["min"].where(ends.index != 2, ends["max"])
    for depth, ranks in spots.groupby(spots).groups.items():
        rows = best[best["rank"].isin(ranks) & (best["depth"] == depth)]
        heights = [*rows["parameter_norm"]]
        if list(ranks) != [2]:
            near = trained[trained["depth"] == depth]["parameter_norm"]
            heights += [*near[near < max(heights) + 0.2 * axes.get_ylim()[1]]]
        away = (-8, 13) if 2 in ranks else (-6, 12) if len(ranks) == 1 else (0, 10)
        look = rank_look(ranks[0]) if len(ranks) == 1 else PLAIN
        words = f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
        label_style = {"xytext": away, "textcoords": "offset points", "weight": "bold"}
        look.name(axes, depth, max(heights), words, **label_style)


def _spectra(
    panels: np.ndarray, shown: list[int], shown_task: pd.DataFrame, spectrum: pd.DataFrame
) -> None:
    """Draw panel (b): the singular values of networks of one task, one panel for each depth."""
    networks = nonempty(shown_task, "network of rank 1 or more").set_index("depth")
    spectrum = select(spectrum, replicate=shown_task["replicate"].iloc[0])
    drawn = spectrum[spectrum["depth"].isin(shown)]
    top = max(1.3, 1.08 * drawn["singular_value"].max())
    for axes, depth in zip(panels, shown, strict=True):
        draw_spectra(axes, select(drawn, depth=depth), int(networks["rank"][depth]), thick=2)
        axes.axhline(1, color=GREY, linewidth=1, linestyle=QUIET.dashes, zorder=1)
        axes.set(ylim=(0, top), xlabel=f"$L$ = {depth}")
        style.ticks(axes.xaxis, [1, depth])
        style.ticks(axes.yaxis, np.arange(0, top, 0.5))
        axes.tick_params(left=axes is panels[0], labelleft=axes is panels[0])
        axes.spines["left"].set_visible(axes is panels[0])
    name_spectra(axes, select(drawn, depth=shown[-1]), int(networks["rank"][shown[-1]]))


def draw_bottleneck(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 1 of paper D: norm by depth, and singular values of one task at four depths."""
    metrics, best = tables["metrics"], _minima(tables)
    plain = metrics[(metrics["recipe"] == "plain") & (metrics["depth"] >= best["depth"].min())]
    first_task = best[(best["replicate"] == best["replicate"].min()) & (best["rank"] > 0)]
    depths, four = first_task["depth"], np.linspace(0, 1, 4)
    chosen = np.quantile(depths, four, method="nearest") if len(depths) else [1]
    shown = sorted(set(map(int, chosen)))  # all of them if they are fewer
    picture = style.canvas(3.8)
    left, right = picture.subfigures(1, 2, width_ratios=[1, 1.45])
    norm = left.subplots()
    _norms(norm, best, plain)
    style.ticks(norm.xaxis, shown)
    norm.set_title(" ")
    style.panel(norm, "a", "squared norm of the parameters", "depth $L$")
    widths = [depth + 2.2 for depth in shown]
    (panels,) = right.subplots(1, len(shown), width_ratios=widths, squeeze=False)
    with or_empty(panels[0], *panels[1:]):
        _spectra(panels, shown, first_task, select(tables["spectrum"], recipe="minimum"))
    panels[0].set_title(" ")
    panels[0].set_ylabel(r"singular values of $W_\ell$")
    style.panel(
        panels[0],
        "b",
        "singular values of four depths" if len(shown) == 4 else "singular values",
        panels[0].get_xlabel(),
    )
    marks = "colors: rank, as in a; grey: all other values"
    right.supxlabel(f"layer $\\ell$ of networks of depth $L$\n{marks}", size=SMALL + 1)
    return picture, metrics


def losses_above(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return how far each loss is above the best loss found at its depth, in percent of the best.

    The rows are training procedures, depths and replicates. Raises NoRows without best solutions.
    """
    keys = ["depth", "replicate"]
    least = select(metrics, recipe="minimum").set_index(keys)["loss"].rename("least")
    rows = at_ridge(metrics)
    rows = rows[rows["recipe"] != "minimum"].join(least, on=keys).dropna(subset="least")
    above = 100 * (rows["loss"] / rows["least"] - 1)
    return nonempty(rows.assign(above=above), "network next to the best solution")


def collapsed(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return networks of ordinary training from the depth on at which most networks are zero."""
    plain = select(metrics, recipe="plain")
    medians = plain.groupby("depth")["parameter_norm"].median()
    alive = medians.index[~(medians < ZERO)]
    return plain[plain["depth"] > alive.max()] if len(alive) else plain


def say_above(tables: Tables) -> str:
    """Return the headline: annealed training's excess loss, and ordinary training's collapse."""
    rows = _deep(losses_above(tables["metrics"]))
    medians = select(rows, recipe="annealed").groupby("depth")["above"].median()
    nonempty(collapsed(rows), "depth from which ordinary training collapses")
    return (
        f"The loss of annealed training is {medians.min():.0f} to {medians.max():.0f} % above the"
        " best solution found; ordinary training of deep networks collapses"
    )


def _by_recipe(axes: Axes, metrics: pd.DataFrame, column: str) -> None:
    """Draw every network, and for each training procedure the medians over the tasks."""
    ends = []
    for recipe, (name, look) in RECIPES.items():
        rows = metrics[metrics["recipe"] == recipe]
        median = rows.groupby("depth")[column].median()
        look.each(axes, rows["depth"], rows[column])
        size = 9 if look.hollow else 6
        look.line(axes, median.index, median, markersize=size)
        ends += [(height, name, look) for height in median.tail(1)]
    style.name_ends(axes, ends)


def draw_recipes(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the rank after training, and the loss above the best solution found."""
    metrics = at_ridge(tables["metrics"])
    deep = _deep(metrics)
    picture, ((left, right),) = style.sheet(gap=2.0, right=1.1)
    depths = sorted(deep["depth"].unique())
    for axes in (left, right):
        room = max(0.7, 0.06 * (depths[-1] - depths[0]))
        axes.set_xlim(depths[0] - room, depths[-1] + room)
        style.ticks(axes.xaxis, depths[:: -(-len(depths) // 7)])
    left.set_ylim(-0.3, deep["rank"].max() + 0.6)
    left.yaxis.set_major_locator(MaxNLocator(7, integer=True))
    style.level(left, RANK)
    label_style: dict[str, Any] = {"textcoords": "offset points", "size": SMALL}
    QUIET.name(left, depths[0], RANK, "the task", xytext=(0, -13), ha="left", **label_style)
    _by_recipe(left, deep, "rank")
    with or_empty(right):
        above = _deep(losses_above(metrics))
        shown = above.loc[above["above"] > 0.1, "above"]
        low, high = shown.min() / 2, 5 * shown.max()
        right.set(yscale="log", ylim=(low, high))
        steps = (1,) if high / low > 1000 else (1, 2, 5)
        percents = [y * k for y in (0.1, 1, 10, 100, 1000) for k in steps if low <= y * k <= high]
        style.ticks(right.yaxis, percents, [f"{y:g}\u00a0%" for y in percents])
        _by_recipe(right, above, "above")
        zero = collapsed(above)
        if len(zero):
            label_style |= {"xytext": (0, 10), "ha": "right"}
            words = "median: " * bool((zero["parameter_norm"] >= ZERO).any()) + "all weights zero"
            QUIET.name(right, zero["depth"].max(), zero["above"].max(), words, **label_style)
    style.panel(left, "a", "rank of the middle layer", "depth L")
    style.panel(right, "b", "loss above the best solution", "depth L")
    return picture, metrics


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run: figure 1 for its networks, of any training procedure."""
    picture, metrics = draw_bottleneck(
        {name: rows.assign(recipe="minimum") for name, rows in tables.items()}
    )
    return picture, metrics[["depth", "replicate", *HEADLINE, "loss", "rank_gap"]]


STATISTIC = ""
"""No statistic in the picture of a sweep: each replicate is drawn."""

HEADLINE = ["parameter_norm", "train_cost", "test_cost", "rank"]

FIGURES = [
    Drawing(
        "bottleneck-fig1",
        draw_bottleneck,
        whose="as in the paper",
        findings=[Finding(say_slope, holds=["slope-tends-to-rank", "rank-falls"])],
        marks="lines in a: best solutions, one a task",
        caption=lambda tables: (
            f"(a) shows the squared parameter norm by depth{_from_depth(tables['metrics'])}: best"
            " solutions found are filled (bold: task of b), ordinary training is hollow"
            " (crosses: zero networks). Dotted lines have the paper's slopes. (b) shows the"
            " singular values by layer: lines are the first k (number above 0.1 in the middle"
            " layer), the grey band the others. Targets depend on two Gaussian variables."
        ),
        shows={"recipe": ["minimum", "annealed", "plain"]},
    ),
    Drawing(
        "bottleneck-recipes",
        draw_recipes,
        unread=("representation", "spectrum", "theorems"),
        findings=[Finding(say_above, holds=["training-fails-deep"])],
        marks="lines: medians, dots: tasks",
        caption=lambda tables: (
            f"(a) shows the middle layer's rank by depth{_from_depth(tables['metrics'])} (dotted:"
            " the task's rank). (b) shows the loss above the best solution found. Ordinary"
            " training has weight decay λ; annealed training has none for 200 steps, up to five"
            " times λ until 60 % of the steps, then λ."
        ),
        shows={"recipe": ["minimum", "annealed", "plain"]},
    ),
]
