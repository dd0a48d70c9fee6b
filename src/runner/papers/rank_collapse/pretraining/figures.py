"""Drawings of study `pretraining`: Figures 4, 6, 11 and 12, and the quick look at one run."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.rank_collapse.pretraining.tables import (
    VARIANT,
    Variant,
    deepest,
    name_of,
    starts,
    through_training,
    variants_in,
)
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.rows import Present, nonempty
from runner.results.statistics import last_epoch, summarize

COLORS = {
    "vanilla": ["tab:blue"],
    "he": ["tab:cyan"],
    "unit_scale": ["tab:gray"],
    "pretrained": ["tab:orange", "tab:green", "tab:red", "tab:olive"],
    "pretrained_end_to_end": ["gold"],
    "plain_ascent": ["mistyrose", "lightcoral", "brown", "maroon"],
    "orthogonal": ["tab:pink"],
    "whitened": ["tab:brown"],
    "batch_norm": ["black"],
    "batch_norm_asymmetric": ["tab:purple"],
}
"""The paper's colours in figure 6; networks that are pre-trained take theirs by M."""

MARKERS = {
    "pretrained": "o",
    "pretrained_end_to_end": "v",
    "batch_norm": "s",
    "batch_norm_asymmetric": "s",
    "unit_scale": "D",
}
"""Of a variant in the plane of rank and accuracy; a triangle for all others."""

COLUMNS = {
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "test_loss": "test loss",
    "test_accuracy": "test accuracy",
    "rank_bound": "r of the last hidden layer",
}


def spoken_for(tables: Tables, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows without those of pre-trained networks whose angle does not raise r most."""
    untouched = rows["angle"] == 0
    if untouched.all():
        return rows
    chosen = tables["angles"].query("chosen")[["depth", *VARIANT]].drop_duplicates()
    return pd.concat([rows[untouched], rows[~untouched].merge(chosen)])


def drawn_curves(tables: Tables) -> pd.DataFrame:
    """Mean of every measure by depth, variant and epoch."""
    keys = ["depth", *VARIANT, "learning_rate", "epoch"]
    return summarize(tables["training"], keys, list(COLUMNS))


def _style(variant: Variant, all_steps: list[int]) -> dict:
    method, steps, _ = variant
    palette = COLORS[method]
    color = palette[all_steps.index(steps) % len(palette) if len(palette) > 1 else 0]
    dashed = method.startswith("batch_norm")
    return {"color": color, "linestyle": "--" if dashed else "-", "linewidth": 1.3}


def _steps(rows: pd.DataFrame) -> list[int]:
    """Every M there is."""
    return sorted(set(rows["pretraining_steps"]) - {0})


def _lines(axes: Axes, drawn: pd.DataFrame, column: str, x: str = "epoch") -> None:
    """One curve for each variant, with its band."""
    for variant in variants_in(drawn):
        rows = drawn[(drawn[VARIANT] == list(variant)).all(axis=1)]
        style = _style(variant, _steps(drawn))
        axes.plot(rows[x], rows[column], label=name_of(variant), **style)
        band = rows[f"{column}_low"], rows[f"{column}_high"]
        axes.fill_between(rows[x], *band, color=style["color"], alpha=0.15, lw=0)
    axes.set_xlabel(x)
    axes.set_ylabel(COLUMNS[column])
    if "accuracy" in column:
        axes.set_ylim(0, 1.03)


def _limit_loss(axes: Axes, drawn: pd.DataFrame, column: str) -> None:
    """A logarithmic axis that shows what lies below one and a half times the loss of a guess."""
    guess = drawn.loc[drawn["epoch"] == 1, column].median()
    smallest = drawn[column].where(drawn[column] > 0).min()
    axes.set_yscale("log")
    if np.isfinite([guess, smallest]).all():
        axes.set_ylim(max(smallest * 0.7, 1e-4), 1.6 * max(guess, 2.303))


def _title(rows: pd.DataFrame) -> str:
    """Which data, and how many epochs of training."""
    first = rows.iloc[0]
    return f"{first['data']}, width {first['width']}, {rows['epoch'].max()} epochs"


@figure("rank-fig4", columns=("train_loss",))
@figure("rank-fig11", columns=("train_accuracy", "test_loss"))
@figure("rank-fig12", columns=("train_loss", "train_accuracy", "test_loss"))
def draw_by_depth(tables: Tables, columns: tuple[str, ...]) -> tuple[Figure, pd.DataFrame]:
    """Figures 4, 11 and 12: one column of panels for each depth, one row for each measure."""
    drawn = spoken_for(tables, drawn_curves(tables))
    drawn = nonempty(drawn[drawn["method"] != "batch_norm_asymmetric"], "method to show")
    depths = sorted(set(drawn["depth"]))
    size = (3.0 * len(depths) + 0.6, 2.5 * len(columns) + 1.2)
    figure, axes = plt.subplots(
        len(columns), len(depths), figsize=size, sharex=True, sharey="row", squeeze=False
    )
    for row, column in zip(axes, columns, strict=True):
        for panel, depth in zip(row, depths, strict=True):
            _lines(panel, drawn[drawn["depth"] == depth], column)
            panel.label_outer()
        if "loss" in column:
            _limit_loss(row[0], drawn, column)
    for panel, depth in zip(axes[0], depths, strict=True):
        panel.set_title(f"depth {depth}")
    labels: dict[str, object] = {}
    for panel in axes[0]:
        labels |= dict(zip(*panel.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=3)
    figure.suptitle(f"{_title(tables['training'])}, rate chosen for each", fontsize=9)
    return figure, drawn


@figure("rank-fig6")
def draw_rank_and_accuracy(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 6 for the deepest networks: r by layer, accuracy and r through training, and what
    every variant learns against the r that it starts with."""
    tables = Present({name: deepest(table) for name, table in tables.items()})
    drawn = spoken_for(tables, drawn_curves(tables))
    figure, axes = plt.subplots(2, 2, figsize=(8.6, 7.4))
    by_layer = spoken_for(tables, tables["metrics"])
    trained = by_layer[by_layer["method"] != "plain_ascent"]
    by_layer = summarize(trained, ["depth", *VARIANT, "layer"], ["rank_bound"])
    _lines(axes[0, 0], by_layer, "rank_bound", x="layer")
    axes[0, 0].set_title("before training")
    _lines(axes[0, 1], drawn, "train_accuracy")
    _lines(axes[1, 0], drawn, "rank_bound")
    for panel in (axes[0, 0], axes[1, 0]):
        _log_rank(panel)
        panel.set_ylabel("r" if panel is axes[0, 0] else COLUMNS["rank_bound"])
    plane = rank_and_learning(tables)
    _draw_plane(axes[1, 1], plane)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    title = f"{_title(tables['training'])}, depth {drawn['depth'].iloc[0]}, rate chosen for each"
    figure.suptitle(title, fontsize=9)
    panels = {"before training": by_layer, "through training": drawn, "rank and learning": plane}
    return figure, pd.concat(panels, names=["panel"]).reset_index(level="panel")


def _log_rank(axes: Axes) -> None:
    """Powers of two on a logarithmic axis."""
    axes.set_yscale("log")
    top = axes.get_ylim()[1]
    ticks = [tick for tick in (1, 2, 4, 8, 16, 32, 64) if tick <= top]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


def rank_and_learning(tables: Tables) -> pd.DataFrame:
    """By variant and depth: r before training, and the training accuracy in the mean of all
    epochs."""
    learned = through_training(tables)
    keys = ["depth", *VARIANT, "replicate"]
    both = starts(tables)[[*keys, "rank_bound"]].merge(learned, on=keys)
    return summarize(both, keys[:-1], ["rank_bound", "train_accuracy"])


def _draw_plane(axes: Axes, plane: pd.DataFrame) -> None:
    """Every variant as a point; one whose angle is not chosen, too, with its angle."""
    for variant in variants_in(plane):
        row = plane[(plane[VARIANT] == list(variant)).all(axis=1)].iloc[0]
        axes.errorbar(
            row["rank_bound"],
            row["train_accuracy"],
            xerr=_reach(row, "rank_bound"),
            yerr=_reach(row, "train_accuracy"),
            marker=MARKERS.get(variant[0], "^"),
            color=_style(variant, _steps(plane))["color"],
            ms=5,
            lw=0.8,
        )
        if variant[2]:
            place = (row["rank_bound"], row["train_accuracy"])
            axes.annotate(f"{variant[2]:g}", place, (4, 3), textcoords="offset points", fontsize=6)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("r of the last hidden layer before training")
    axes.set_ylabel("training accuracy, mean of all epochs")
    axes.set_title("small numbers: angle of a step")


def _reach(row: pd.Series, column: str) -> np.ndarray:
    """How far the interval reaches below and above the mean, as error bars take it."""
    low, high = row[column] - row[f"{column}_low"], row[f"{column}_high"] - row[column]
    return np.nan_to_num(np.array([[low], [high]])).clip(min=0)


@overview
def overview_pretraining(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: figure 6, and how every variant starts and ends."""
    figure, _ = draw_rank_and_accuracy(tables)
    at_start = summarize(starts(tables), VARIANT, ["rank_bound", "root_mean_square"])
    ends = last_epoch(drawn_curves(tables))
    columns = [*VARIANT, "learning_rate", "train_loss", "train_accuracy", "test_accuracy"]
    shown = at_start[[*VARIANT, "rank_bound", "root_mean_square"]]
    return figure, shown.merge(ends[columns], on=VARIANT)
