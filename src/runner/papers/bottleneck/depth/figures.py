"""Drawings of paper D's figure 1, and where the room's other drawings are."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from runner.papers.bottleneck.depth.tables import FITTED, affine_fits
from runner.papers.bottleneck.looks import RANKS, rank_look
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview
from runner.results.rows import nonempty, select
from runner.results.style_before import BLACK, guide, picture, points, subplots

RECIPES = {
    "plain": "plain recipe: ridge from the start",
    "annealed": "annealed recipe: fit, press the rank down, relax",
    "minimum": "lowest loss found of each depth",
}
SHOWN = 4
"""Depths of panel (b)."""
ASIDE = 0.25
"""Layers by which a rank is drawn beside the next one, so that none hides another."""


def draw_norm(axes: Axes, metrics: pd.DataFrame) -> None:
    """Panel (a): norm against depth, by rank, with a line through every range.

    A network whose spectrum has its largest gap at another rank is drawn hollow.
    """
    for rank, group in metrics.groupby("rank"):
        dots = rank_look(rank).dots | {"markersize": points(5)}
        for good, marker in ((True, dots["marker"]), (False, "x")):
            rows = group[(group["train_cost"] < FITTED) == good]
            for agrees, fill in ((True, "full"), (False, "none")):
                some = rows[(rows["rank_gap"] == rank) == agrees]
                options = dots | {"marker": marker, "fillstyle": fill}
                place = some["depth"] + ASIDE * (min(rank, len(RANKS) - 1) - len(RANKS) // 2)
                axes.plot(place, some["parameter_norm"], **options)
    for fit in affine_fits(metrics).itertuples():
        L = np.array([fit.first, fit.last])
        thin = {"color": rank_look(fit.rank).color, "linewidth": points(0.8), "alpha": 0.6}
        axes.plot(L, fit.slope * L + fit.intercept, **thin)
    axes.set(xlabel="depth L", ylabel=r"$\|\theta\|^2$ after training")


def legend_of(metrics: pd.DataFrame) -> list[Line2D]:
    """What the markers of panel (a) stand for; a rank of none that fits has the cross."""
    top = len(RANKS) - 1
    names = {min(rank, top): f"rank {rank}" for rank in sorted(metrics["rank"].unique())}
    if top in names:
        names[top] = f"rank {top} or more"
    fitting = {min(rank, top) for rank in metrics.loc[metrics["train_cost"] < FITTED, "rank"]}
    looks = {rank: RANKS[rank].dots for rank in names}
    looks |= {rank: looks[rank] | {"marker": "x"} for rank in names if rank not in fitting}
    handles = [Line2D([], [], label=name, **looks[rank]) for rank, name in names.items()]
    black = {"linestyle": "none", "color": BLACK}
    hollow = {"marker": "o", "fillstyle": "none", "label": "largest gap at another rank"}
    cross = {"marker": "x", "label": f"train cost above {FITTED:g}, in the rank's colour"}
    return [*handles, Line2D([], [], **black, **hollow), Line2D([], [], **black, **cross)]


def _say_slopes(fits: pd.DataFrame) -> str:
    """The slope of every line, by rank, in order."""
    words = []
    for rank, rows in fits.groupby("rank"):
        slopes = ", ".join(f"{slope:.2f}" for slope in sorted(rows["slope"]))
        words.append(f"{slopes} at rank {rank}")
    return ", ".join(words) or "none"


def say_bottleneck(tables: Tables) -> str:
    """Panels and marks of figure 1, and the slopes of its lines."""
    metrics = tables["metrics"]
    slopes = [
        f"{name}: {_say_slopes(affine_fits(metrics[metrics['recipe'] == recipe]))}"
        for recipe, name in RECIPES.items()
        if recipe in set(metrics["recipe"])
    ]
    return (
        "A row for each recipe. (a) Squared norm of the parameters after training: every network"
        " of every replicate, marked by its rank, the number of singular values above 0.1 of the"
        " middle layer, the ranks of one depth a little apart; hollow where the largest gap of the"
        " spectrum is at another rank. Lines are fitted through neighbouring depths, three or more,"
        " of one replicate that keep their rank. (b) Singular values of every layer for four"
        " depths, each of the replicate of the lowest loss: thick in the rank's colour up to the"
        " rank, thin the others; dotted: one. Slopes of the lines:"
        f" {'; '.join(slopes)}. Inputs and targets are random functions of a Gaussian latent"
        " variable, the targets of two of its coordinates."
    )


def draw_spectrum(axes: Axes, spectrum: pd.DataFrame, rank: int, title: str) -> None:
    """Singular values of every W_l, one line for each index; the first `rank` in colour."""
    table = spectrum.pivot(index="layer", columns="index", values="singular_value")
    for index in table.columns:
        large = index <= rank
        color, width = (rank_look(rank).color, 1.4) if large else (BLACK, 0.5)
        line = {"color": color, "linewidth": points(width), "alpha": 1 if large else 0.45}
        axes.plot(table.index, table[index], **line)
    axes.axhline(1, **guide(zorder=0))
    axes.set(xlabel=r"layer $\ell$", ylim=(0, None), title=title)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))


def _row(part: SubFigure, tables: Tables, recipe: str) -> pd.DataFrame:
    metrics = tables["metrics"].query("recipe == @recipe")
    part.suptitle(RECIPES[recipe], fontweight="bold")
    axes = part.subplots(1, SHOWN + 1, width_ratios=[1.9] + [1] * SHOWN)
    draw_norm(axes[0], metrics)
    axes[0].set_title("(a)")
    with or_empty(*axes[1:]):
        _spectra(axes[1:], metrics, select(tables["spectrum"], recipe=recipe))
    axes[1].set_ylabel(r"singular values of $W_\ell$")
    return metrics.assign(panel=f"norm, {recipe}")


def _spectra(panels: np.ndarray, metrics: pd.DataFrame, spectrum: pd.DataFrame) -> None:
    """Panel (b): the spectra of as many depths as there are panels, or fewer."""
    alive = nonempty(metrics[metrics["rank"] > 0], "network of rank 1 or more")
    alive = alive.sort_values("loss").groupby("depth").first()
    shown = np.unique(np.quantile(alive.index, np.linspace(0, 1, SHOWN), method="nearest"))
    for panel in panels[len(shown) :]:
        panel.set_axis_off()
    for panel, L in zip(panels, shown, strict=False):
        rank, replicate = alive.loc[L, ["rank", "replicate"]]
        own = spectrum[(spectrum["depth"] == L) & (spectrum["replicate"] == replicate)]
        draw_spectrum(panel, own, rank, f"L = {L}, rank {rank}")
    panels[0].set_title(f"(b) {panels[0].get_title()}")
    top = max(panel.get_ylim()[1] for panel in panels)
    for panel in panels:
        panel.set_ylim(0, top)
        panel.tick_params(labelleft=panel is panels[0])


@figure("bottleneck-fig1", caption=say_bottleneck)
def draw_bottleneck(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 1 of paper D for every recipe: norm against depth, and spectra of four depths.

    Of each depth the replicate with the lowest loss is drawn.
    """
    recipes = [r for r in RECIPES if r in set(tables["metrics"]["recipe"])]
    whole = picture(size=(11.5, 3.2 * len(recipes) + 0.6))
    heights = [1.0] * (len(recipes) - 1) + [1.2]  # the last has the legend
    parts = np.atleast_1d(whole.subfigures(len(recipes), 1, height_ratios=heights))
    drawn = [_row(part, tables, recipe) for part, recipe in zip(parts, recipes, strict=True)]
    parts[-1].legend(handles=legend_of(tables["metrics"]), loc="outside lower center", ncols=5)
    fits = affine_fits(tables["metrics"]).assign(panel="fitted lines")
    return whole, pd.concat([*drawn, fits], ignore_index=True)


@overview
def overview_bottleneck(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: norm against depth, and the spectra of the deepest network."""
    metrics, spectrum = tables["metrics"], tables["spectrum"]
    whole, axes = subplots(1, 2, size=(8, 3.8))
    draw_norm(axes[0], metrics)
    first = metrics[metrics["replicate"] == 0]
    deepest = first.loc[first["depth"].idxmax()]
    own = spectrum[(spectrum["depth"] == deepest["depth"]) & (spectrum["replicate"] == 0)]
    draw_spectrum(axes[1], own, deepest["rank"], f"singular values, L = {deepest['depth']}")
    whole.legend(handles=legend_of(metrics), loc="outside lower center", ncols=4)
    columns = ["depth", "replicate", "parameter_norm", "train_cost", "test_cost", "loss", "rank"]
    return whole, metrics[[*columns, "rank_gap"]]
