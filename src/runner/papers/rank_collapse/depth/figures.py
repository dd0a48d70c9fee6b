"""Drawings of study `rank_collapse`: Figures 1 and 2, and the quick look at one run."""

from math import sqrt

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.data import CLASSES
from runner.papers.rank_collapse.depth.tables import rank_of_last_layer, trained
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.statistics import last_epoch, summarize

STYLES = {
    "batch": ("tab:blue", "o", "batch norm"),
    "none": ("tab:orange", "s", "vanilla"),
    "batch_no_mean": ("tab:cyan", "^", "batch norm without mean"),
}
"""The paper's colours: blue for networks with batch normalization, orange for vanilla ones."""

ROOT = {"color": "grey", "linestyle": ":", "linewidth": 1.2}


def _depth_axis(axes: Axes, depths: pd.Series) -> None:
    ticks = sorted(set(depths))
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(depth) for depth in ticks])
    axes.minorticks_off()
    axes.set_xlabel("depth L (hidden layers)")


def _points(axes: Axes, drawn: pd.DataFrame, column: str) -> None:
    for normalization, rows in drawn.groupby("normalization", sort=False):
        color, marker, label = STYLES[normalization]
        rows = rows.sort_values("depth")
        style = {"color": color, "marker": marker, "label": label, "capsize": 2.5}
        axes.errorbar(rows["depth"], rows[column], rows[f"{column}_ci"], **style)


@figure("rank-fig1")
def draw_by_depth(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 1: rank of the last layer before training, and accuracy after it, against depth."""
    keys = ["depth", "normalization"]
    rank = summarize(rank_of_last_layer(tables["metrics"]), keys, ["matrix_rank", "rank_bound"])
    columns = ["train_accuracy", "test_accuracy", "train_loss"]
    accuracy = summarize(trained(tables), [*keys, "learning_rate"], columns)
    drawn = rank.merge(accuracy, on=keys)
    first = tables["metrics"].iloc[0]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4))
    _points(left, drawn, "matrix_rank")
    left.axhline(sqrt(first["width"]), **ROOT)
    left.annotate("√d", (1.01, sqrt(first["width"])), xycoords=("axes fraction", "data"))
    left.set(ylabel="rank of the last hidden layer", title="at initialisation", ylim=(0, None))
    _points(right, drawn, "train_accuracy")
    for row in drawn.itertuples():
        below = -13 if row.normalization == "none" else 7
        color = STYLES[row.normalization][0]
        place = {"xytext": (0, below), "textcoords": "offset points", "ha": "center"}
        point = (row.depth, row.train_accuracy)
        right.annotate(f"{row.learning_rate:g}", point, color=color, fontsize=7, **place)
    right.axhline(1 / CLASSES, **ROOT)
    epochs = tables["training"]["epoch"].max()
    title = f"after {epochs} epochs of SGD; numbers: rate chosen"
    right.set(ylabel="training accuracy", title=title, ylim=(-0.02, 1.12))
    for axes in (left, right):
        _depth_axis(axes, drawn["depth"])
    right.legend(loc="lower left", bbox_to_anchor=(0, 0.12))
    figure.suptitle(f"{first['data']}, ReLU networks of width {first['width']}", fontsize=9)
    return figure, drawn


def by_layer(metrics: pd.DataFrame) -> pd.DataFrame:
    """Mean rank of each layer from 1 on, by activation, dtype and normalization."""
    keys = ["activation", "dtype", "normalization", "layer"]
    rows = metrics[metrics["layer"] > 0]
    return summarize(rows, keys, ["matrix_rank", "rank_bound"])


def _band(axes: Axes, rows: pd.DataFrame, column: str, **line) -> None:
    """The mean by layer and its confidence interval."""
    axes.plot(rows["layer"], rows[column], **line)
    band = rows[f"{column}_low"], rows[f"{column}_high"]
    axes.fill_between(rows["layer"], *band, color=line["color"], alpha=0.2, lw=0)


def _rank_panel(axes: Axes, drawn: pd.DataFrame, width: int) -> None:
    for normalization, (color, _, label) in STYLES.items():
        rows = drawn[drawn["normalization"] == normalization]
        for dtype, of_dtype in rows.groupby("dtype"):
            double = dtype == "float64"
            line = {"color": color, "linestyle": "--" if double else "-"}
            _band(axes, of_dtype, "matrix_rank", label=f"{label}, {dtype}", **line)
    axes.axhline(sqrt(width), **ROOT)
    axes.annotate("√d", (1.01, sqrt(width)), xycoords=("axes fraction", "data"), color="grey")
    axes.set(xscale="log", yscale="log", xlabel="layer", ylim=(0.8, 1.5 * width))
    ticks = [1, 2, 4, 8, 16, 32]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


@figure("rank-fig2")
def draw_by_layer(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2: rank against depth for Gaussian inputs, one panel for each activation."""
    metrics = tables["metrics"]
    drawn = by_layer(metrics)
    activations = [name for name in ("linear", "relu") if name in set(drawn["activation"])]
    size = (8.4, 3.6)
    figure, axes = plt.subplots(1, len(activations), figsize=size, sharey=True, squeeze=False)
    width = metrics["width"].iloc[0]
    for panel, activation in zip(axes[0], activations, strict=True):
        _rank_panel(panel, drawn[drawn["activation"] == activation], width)
        panel.set_title({"linear": "linear", "relu": "ReLU"}[activation])
    axes[0, 0].set_ylabel("rank of the hidden layer")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure, drawn


@overview
def overview_rank_collapse(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: rank and r by layer before training, and the best training curves."""
    metrics, training = tables["metrics"], tables.get("training")
    ranks = summarize(metrics, ["normalization", "layer"], ["matrix_rank", "rank_bound"])
    panels = 2 if training is None else 3
    figure, axes = plt.subplots(1, panels, figsize=(3.1 * panels, 3.0))
    for normalization, rows in ranks.groupby("normalization", sort=False):
        color, _, label = STYLES[normalization]
        for panel, column in zip(axes, ("matrix_rank", "rank_bound"), strict=False):
            _band(panel, rows, column, color=color, label=label)
    for panel, label in zip(axes, ("rank", "r(H)"), strict=False):
        panel.set(xlabel="layer", ylabel=label, title="before training", ylim=(0, None))
        if metrics["layer"].max() > 64:
            panel.set_xscale("symlog", linthresh=1)
    last = rank_of_last_layer(metrics)
    summary = summarize(last, ["normalization"], ["matrix_rank", "soft_rank", "rank_bound"])
    if training is not None:
        best = tables["training"]
        means = summarize(best, ["normalization", "epoch"], ["train_accuracy"])
        for normalization, rows in means.groupby("normalization", sort=False):
            axes[2].plot(rows["epoch"], rows["train_accuracy"], color=STYLES[normalization][0])
        axes[2].set(xlabel="epoch", ylabel="training accuracy", ylim=(0, 1.03))
        axes[2].set_title("rate chosen")
        columns = ["learning_rate", "train_loss", "train_accuracy", "test_accuracy"]
        ends = summarize(last_epoch(best), ["normalization"], columns)
        summary = summary.merge(ends, on="normalization")
    axes[0].legend()
    shown = [c for c in summary.columns if not c.endswith(("_ci", "_low", "_high"))]
    return figure, summary[shown]
