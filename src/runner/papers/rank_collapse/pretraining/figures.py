"""Drawings of study `pretraining`: Figures 4, 6, 11 and 12, and the quick look at one run."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.rank_collapse.pretraining.tables import (
    VARIANT,
    Variant,
    curves,
    deepest,
    name_of,
)
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.rows import nonempty
from runner.results.statistics import last_epoch, summarize

COLORS = {
    "vanilla": ["tab:blue"],
    "pretrained": ["tab:orange", "tab:green", "tab:olive", "tab:red"],
    "batch_norm": ["black"],
    "batch_norm_asymmetric": ["tab:purple"],
}
"""The paper's colours in figure 6; pre-trained networks take theirs by the number of iterations."""

COLUMNS = {
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "test_loss": "test loss",
    "test_accuracy": "test accuracy",
    "rank_bound": "r of the last hidden layer",
}


def drawn_curves(tables: Tables) -> pd.DataFrame:
    """Mean of every measure by depth, variant and epoch, at the chosen rate of each variant."""
    return summarize(curves(tables), ["depth", *VARIANT, "learning_rate", "epoch"], list(COLUMNS))


def _style(variant: Variant, all_steps: list[int]) -> dict:
    method, steps, rescaled = variant
    palette = COLORS[method]
    color = palette[all_steps.index(steps) % len(palette) if method == "pretrained" else 0]
    if rescaled:
        return {"color": color, "linestyle": ":", "linewidth": 1.3}
    return {"color": color, "linestyle": "--" if method.startswith("batch_norm") else "-"}


def _ordered(drawn: pd.DataFrame) -> list[tuple[tuple, pd.DataFrame]]:
    """The curves in the order of the legend: vanilla, pre-trained, batch norm; rescaled after
    raw."""
    place = {method: index for index, method in enumerate(COLORS)}
    groups = [(key, rows) for key, rows in drawn.groupby(VARIANT)]
    return sorted(groups, key=lambda group: (place[group[0][0]], *group[0][1:]))


def _lines(
    axes: Axes, drawn: pd.DataFrame, column: str, x: str = "epoch", rates: bool = False
) -> None:
    """One curve for each variant; `rates` names the learning rate in the legend."""
    steps = sorted(set(drawn["pretraining_steps"]) - {0})
    for variant, rows in _ordered(drawn):
        style = _style(variant, steps)
        rate = f" ({rows['learning_rate'].iloc[0]:g})" if rates else ""
        axes.plot(rows[x], rows[column], label=name_of(variant) + rate, **style)
        if not variant[2]:
            band = rows[f"{column}_low"], rows[f"{column}_high"]
            axes.fill_between(rows[x], *band, color=style["color"], alpha=0.15, lw=0)
    axes.set_xlabel(x)
    if "accuracy" in column:
        axes.set_ylim(0, 1.03)


def _limit_loss(axes: Axes, drawn: pd.DataFrame, column: str) -> None:
    """A logarithmic axis that shows what lies below one and a half times the loss of a guess."""
    guess = drawn.loc[drawn["epoch"] == 1, column].median()
    smallest = drawn[column].where(drawn[column] > 0).min()
    axes.set_yscale("log")
    if np.isfinite([guess, smallest]).all():
        axes.set_ylim(max(smallest * 0.7, 1e-4), 1.6 * max(guess, 2.303))


@figure("rank-fig4", columns=("train_loss",))
@figure("rank-fig11", columns=("train_accuracy", "test_loss"))
@figure("rank-fig12", columns=("train_loss", "train_accuracy", "test_loss"))
def draw_by_depth(tables: Tables, columns: tuple[str, ...]) -> tuple[Figure, pd.DataFrame]:
    """Figures 4, 11 and 12: one column of panels for each depth, one row for each measure."""
    training = tables["training"]
    drawn = drawn_curves(tables)
    drawn = nonempty(drawn[drawn["method"] != "batch_norm_asymmetric"], "method to show")
    depths = sorted(set(drawn["depth"]))
    size = (3.0 * len(depths) + 0.6, 2.5 * len(columns) + 1.0)
    figure, axes = plt.subplots(
        len(columns), len(depths), figsize=size, sharex=True, sharey="row", squeeze=False
    )
    for row, column in zip(axes, columns, strict=True):
        for panel, depth in zip(row, depths, strict=True):
            _lines(panel, drawn[drawn["depth"] == depth], column)
            panel.set_xlabel("")
        row[0].set_ylabel(COLUMNS[column])
        if "loss" in column:
            _limit_loss(row[0], drawn, column)
    for panel, depth in zip(axes[0], depths, strict=True):
        panel.set_title(f"depth {depth}")
    for panel in axes[-1]:
        panel.set_xlabel("epoch")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    first = training.iloc[0]
    figure.suptitle(f"{first['data']}, width {first['width']}, rate chosen for each", fontsize=9)
    return figure, drawn


@figure("rank-fig6")
def draw_rank_and_accuracy(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 6: training accuracy and r through training, for the deepest networks."""
    training = tables["training"]
    drawn = deepest(drawn_curves(tables))
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 4.2))
    for panel, column in ((left, "train_accuracy"), (right, "rank_bound")):
        _lines(panel, drawn, column, rates=True)
        panel.set_ylabel(COLUMNS[column])
    steps = sorted(set(drawn["pretraining_steps"]) - {0})
    before = initial_rank(tables["metrics"])
    before = before[before["pretraining_steps"].isin([0, *steps])]  # as the lines
    for variant, row in before.groupby(VARIANT):
        right.plot(0, row["rank_bound"], "o", color=_style(variant, steps)["color"], clip_on=False)
    right.set(yscale="log", title="dots: before training")
    ticks = [tick for tick in (1, 2, 4, 8, 16, 32) if tick <= 2 * drawn["rank_bound"].max()]
    right.set_yticks(ticks, [str(tick) for tick in ticks])
    right.minorticks_off()
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    first = training.iloc[0]
    depth, width = drawn["depth"].iloc[0], first["width"]
    title = f"{first['data']}, depth {depth}, width {width} (rate chosen for each)"
    figure.suptitle(title, fontsize=9)
    return figure, drawn


def initial_rank(metrics: pd.DataFrame) -> pd.DataFrame:
    """Mean r, rank and scale of the last hidden layer of the deepest networks before training."""
    last = metrics[
        (metrics["layer"] == metrics["depth"]) & (metrics["depth"] == metrics["depth"].max())
    ]
    return summarize(last, VARIANT, ["rank_bound", "matrix_rank", "root_mean_square"])


@overview
def overview_pretraining(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: r by layer before training, accuracy and r through training."""
    ranks = summarize(tables["metrics"], [*VARIANT, "layer"], ["rank_bound"])
    drawn = drawn_curves(tables)
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 4.0))
    _lines(axes[0], ranks, "rank_bound", x="layer")
    axes[0].set_title("before training")
    _lines(axes[1], drawn, "train_accuracy", rates=True)
    _lines(axes[2], drawn, "rank_bound")
    for panel, label in zip(axes, ("r(H)", "training accuracy", "r(H)"), strict=True):
        panel.set_ylabel(label)
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    columns = [*VARIANT, "learning_rate", "train_loss", "train_accuracy", "test_accuracy"]
    start = initial_rank(tables["metrics"])[[*VARIANT, "rank_bound", "root_mean_square"]]
    summary = start.merge(last_epoch(drawn)[columns], on=VARIANT)
    return figure, summary
