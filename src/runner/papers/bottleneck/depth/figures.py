"""Drawings of paper D's figure 1, and where the room's other drawings are."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from runner.papers.bottleneck.depth.tables import FITTED, affine_fits
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview
from runner.results.rows import nonempty, select

RANK_COLORS = ("grey", "tab:red", "tab:blue", "tab:green", "tab:purple", "tab:brown", "tab:pink")
RANK_MARKERS = ("P", "v", "o", "s", "D", "^", "*")
"""By rank 0, 1, 2, ...; the last one for all larger ranks."""
RECIPES = {
    "plain": "plain recipe: ridge from the start",
    "annealed": "annealed recipe: fit, press the rank down, relax",
    "minimum": "lowest loss found of each depth",
}
SHOWN = 4
"""Depths of panel (b)."""


def rank_marker(rank: int) -> str:
    """The marker of a rank."""
    return RANK_MARKERS[min(rank, len(RANK_MARKERS) - 1)]


def rank_color(rank: int) -> str:
    """The colour of a rank."""
    return RANK_COLORS[min(rank, len(RANK_COLORS) - 1)]


def draw_norm(axes: Axes, metrics: pd.DataFrame) -> None:
    """Panel (a): norm against depth, coloured by rank, with a line through every range.

    A network whose spectrum has its largest gap at another rank is drawn hollow.
    """
    for rank, group in metrics.groupby("rank"):
        for good, style in ((True, rank_marker(rank)), (False, "x")):
            rows = group[(group["train_cost"] < FITTED) == good]
            for agrees, fill in ((True, "full"), (False, "none")):
                some = rows[(rows["rank_gap"] == rank) == agrees]
                options = {"color": rank_color(rank), "fillstyle": fill, "markersize": 5}
                axes.plot(some["depth"], some["parameter_norm"], style, **options)
    fits = affine_fits(metrics)
    for fit in fits.itertuples():
        L = np.array([fit.first, fit.last])
        axes.plot(L, fit.slope * L + fit.intercept, color=rank_color(fit.rank), lw=0.8, alpha=0.6)
    ranks = sorted(metrics["rank"].unique())
    shown = [rank for rank in ranks if rank < len(RANK_COLORS) - 1]
    handles = [Line2D([], [], ls="", marker=rank_marker(r), color=rank_color(r)) for r in shown]
    labels = [_with_slopes(rank, fits) for rank in shown]
    if len(shown) < len(ranks):
        top = len(RANK_COLORS) - 1
        handles.append(Line2D([], [], ls="", marker=rank_marker(top), color=rank_color(top)))
        labels.append(f"rank {top} or more")
    style = {"ls": "", "color": "black", "markersize": 5}
    handles += [Line2D([], [], marker="o", fillstyle="none", **style)]
    handles += [Line2D([], [], marker="x", **style)]
    labels += ["largest gap at another rank", "train cost above 0.1"]
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1, 1), fontsize=7)
    axes.set(xlabel="depth L", ylabel=r"$\|\theta\|^2$ after training")


def _with_slopes(rank: int, fits: pd.DataFrame) -> str:
    """The rank, with the slopes of its ranges from the smallest to the largest."""
    slopes = sorted(fits.loc[fits["rank"] == rank, "slope"])
    if not slopes:
        return f"rank {rank}"
    words = f"{slopes[0]:.2f}" + (f" to {slopes[-1]:.2f}" if len(slopes) > 1 else "")
    return f"rank {rank}: slope {words} ({len(slopes)})"


def draw_spectrum(axes: Axes, spectrum: pd.DataFrame, rank: int, title: str) -> None:
    """Singular values of every W_l, one line for each index; the first `rank` in colour."""
    table = spectrum.pivot(index="layer", columns="index", values="singular_value")
    for index in table.columns:
        large = index <= rank
        color, width = (rank_color(rank), 1.4) if large else ("black", 0.5)
        axes.plot(table.index, table[index], color=color, lw=width, alpha=1 if large else 0.45)
    axes.axhline(1, color="tab:orange", lw=0.8, ls="--", zorder=0)
    axes.set(xlabel=r"layer $\ell$", ylim=(0, None), title=title)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _row(part: SubFigure, tables: Tables, recipe: str) -> pd.DataFrame:
    metrics = tables["metrics"].query("recipe == @recipe")
    part.suptitle(RECIPES[recipe], fontweight="bold")
    axes = part.subplots(1, SHOWN + 1, width_ratios=[2.6] + [1] * SHOWN)
    draw_norm(axes[0], metrics)
    axes[0].set_title("(a)", loc="left")
    with or_empty(*axes[1:]):
        _spectra(axes[1:], metrics, select(tables["spectrum"], recipe=recipe))
    axes[1].set_title("(b)", loc="left")
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
    top = max(panel.get_ylim()[1] for panel in panels)
    for panel in panels:
        panel.set_ylim(0, top)


@figure("bottleneck-fig1")
def draw_bottleneck(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 1 of paper D for every recipe: norm against depth, and spectra of four depths.

    Of each depth the replicate with the lowest loss is drawn.
    """
    recipes = [r for r in RECIPES if r in set(tables["metrics"]["recipe"])]
    figure = plt.figure(figsize=(13.5, 3.2 * len(recipes)))
    parts = np.atleast_1d(figure.subfigures(len(recipes), 1))
    drawn = [_row(part, tables, recipe) for part, recipe in zip(parts, recipes, strict=True)]
    fits = affine_fits(tables["metrics"]).assign(panel="fitted lines")
    return figure, pd.concat([*drawn, fits], ignore_index=True)


@overview
def overview_bottleneck(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: norm against depth, and the spectra of the deepest network."""
    metrics, spectrum = tables["metrics"], tables["spectrum"]
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4))
    draw_norm(axes[0], metrics)
    first = metrics[metrics["replicate"] == 0]
    deepest = first.loc[first["depth"].idxmax()]
    own = spectrum[(spectrum["depth"] == deepest["depth"]) & (spectrum["replicate"] == 0)]
    draw_spectrum(axes[1], own, deepest["rank"], f"singular values, L = {deepest['depth']}")
    columns = ["depth", "replicate", "parameter_norm", "train_cost", "test_cost", "loss", "rank"]
    return figure, metrics[[*columns, "rank_gap"]]
