"""Drawings of study `rank_collapse`: Figures 1 and 2, and the quick look at one run."""

from math import sqrt

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.data import CLASSES
from runner.papers.rank_collapse.depth.tables import rank_of_last_layer, trained
from runner.papers.rank_collapse.looks import NORMALIZATIONS
from runner.results.captions import dataset
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.spreads import spread
from runner.results.statistics import last_epoch, summarize
from runner.results.style_before import (
    DASHED,
    HOLLOW,
    Look,
    band,
    beside,
    guide,
    points,
    sparse,
    subplots,
)

LABELS = {"batch": "batch norm", "none": "vanilla", "batch_no_mean": "batch norm without mean"}


def _depth_axis(axes: Axes, depths: pd.Series) -> None:
    ticks = sorted(set(depths))
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(depth) for depth in ticks])
    axes.minorticks_off()
    axes.set_xlabel("depth L (hidden layers)")


def _points(axes: Axes, drawn: pd.DataFrame, column: str) -> None:
    for normalization, rows in drawn.groupby("normalization", sort=False):
        style = NORMALIZATIONS[normalization].both | {"label": LABELS[normalization]}
        rows = rows.sort_values("depth")
        axes.errorbar(rows["depth"], rows[column], rows[f"{column}_ci"], capsize=2.5, **style)


def by_depth(tables: Tables) -> pd.DataFrame:
    """Mean rank before and accuracy after training, by depth and normalization, with the rate."""
    keys = ["depth", "normalization"]
    rank = summarize(rank_of_last_layer(tables["metrics"]), keys, ["matrix_rank", "rank_bound"])
    columns = ["train_accuracy", "test_accuracy", "train_loss"]
    accuracy = summarize(trained(tables), [*keys, "learning_rate"], columns)
    return rank.merge(accuracy, on=keys)


def say_rates(tables: Tables) -> str:
    """Panels, bars, and the rate that was chosen for each depth."""
    chosen = []
    for normalization, rows in by_depth(tables).groupby("normalization", sort=False):
        by_rate = rows.sort_values("depth").groupby("learning_rate", sort=False)["depth"]
        words = [f"{rate:g} at L = {', '.join(map(str, depths))}" for rate, depths in by_rate]
        chosen.append(f"{LABELS[normalization]} {'; '.join(words)}")
    return (
        "Left: rank of the last hidden layer before training, on N samples; dotted: the root of the"
        " width d. Right: training accuracy after the last epoch of SGD; dotted: the accuracy of a"
        " guess. Points are means over the replicates, bars the 95 % intervals of the means"
        " (Student's t)."
        f" Learning rates, chosen on replicates of their own: {'. '.join(chosen)}."
    )


@figure("rank-fig1", caption=say_rates)
def draw_by_depth(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 1: rank of the last layer before training, and accuracy after it, against depth."""
    drawn = by_depth(tables)
    first = tables["metrics"].iloc[0]
    picture, (left, right) = subplots(1, 2, size=(8.4, 3.5))
    _points(left, drawn, "matrix_rank")
    left.axhline(sqrt(first["width"]), **guide())
    left.set(ylabel="rank of the last hidden layer", title="at initialisation", ylim=(0, None))
    beside(left, sqrt(first["width"]), "√d")
    _points(right, drawn, "train_accuracy")
    right.axhline(1 / CLASSES, **guide())
    epochs = tables["training"]["epoch"].max()
    right.set(ylabel="training accuracy", title=f"after {epochs} epochs of SGD", ylim=(0, 1.03))
    beside(right, 1 / CLASSES, "guess")
    for axes in (left, right):
        _depth_axis(axes, drawn["depth"])
    handles, labels = left.get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=3)
    title = f"{dataset(tables['metrics'])}, ReLU networks of width {first['width']}"
    picture.suptitle(title, fontsize=9)
    return picture, drawn


def by_layer(metrics: pd.DataFrame) -> pd.DataFrame:
    """Median rank of each layer from 1 on, with its range, by activation, dtype, normalization."""
    keys = ["activation", "dtype", "normalization", "layer"]
    return spread(metrics[metrics["layer"] > 0], keys, ["matrix_rank", "rank_bound"])


def _line(axes: Axes, rows: pd.DataFrame, column: str, look: Look, **options) -> None:
    """The median or mean by layer with its band."""
    axes.plot(rows["layer"], rows[column], **look.line | options)
    band(axes, rows["layer"], rows[f"{column}_low"], rows[f"{column}_high"], look.color)


def _rank_panel(axes: Axes, drawn: pd.DataFrame, width: int) -> None:
    """What lies below is drawn thicker: two lines nearly coincide."""
    for place, (normalization, look) in enumerate(NORMALIZATIONS.items()):
        rows = drawn[drawn["normalization"] == normalization]
        for dtype, of_dtype in rows.groupby("dtype"):
            double = dtype == "float64"
            options = look.both | {"linestyle": DASHED if double else "-"}
            options |= {"label": f"{LABELS[normalization]}, {dtype}"}
            options |= HOLLOW if double else {}
            options |= {"markevery": sparse(len(of_dtype), 2 * place + double, 7)}
            thick = points(3.2 if normalization == "batch" else 1.3)
            _line(axes, of_dtype, "matrix_rank", look, linewidth=thick, **options)
    axes.axhline(sqrt(width), **guide())
    axes.set(xscale="log", yscale="log", xlabel="layer", ylim=(0.8, 1.5 * width))
    beside(axes, sqrt(width), "√d")
    ticks = [1, 2, 4, 8, 16, 32]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


@figure(
    "rank-fig2",
    caption="Numerical rank of each hidden layer before training, for linear and for ReLU"
    " networks, in single precision (solid lines, filled markers) and in double (dashed lines,"
    " hollow markers). Lines are medians over the replicates, bands their whole range; dotted: the"
    " root of the width d. The thick line is that of batch norm, on which others may lie.",
)
def draw_by_layer(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2: rank against depth for Gaussian inputs, one panel for each activation."""
    metrics = tables["metrics"]
    drawn = by_layer(metrics)
    activations = [name for name in ("linear", "relu") if name in set(drawn["activation"])]
    picture, axes = subplots(1, len(activations), size=(8.4, 3.9), sharey=True, squeeze=False)
    width = metrics["width"].iloc[0]
    for panel, activation in zip(axes[0], activations, strict=True):
        _rank_panel(panel, drawn[drawn["activation"] == activation], width)
        panel.set_title({"linear": "linear", "relu": "ReLU"}[activation])
    axes[0, 0].set_ylabel("rank of the hidden layer")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=3)
    return picture, drawn


@overview
def overview_rank_collapse(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: rank and r by layer before training, and the best training curves."""
    metrics, training = tables["metrics"], tables.get("training")
    ranks = summarize(metrics, ["normalization", "layer"], ["matrix_rank", "rank_bound"])
    panels = 2 if training is None else 3
    picture, axes = subplots(1, panels, size=(3.1 * panels, 3.0))
    for normalization, rows in ranks.groupby("normalization", sort=False):
        look = NORMALIZATIONS[normalization]
        for panel, column in zip(axes, ("matrix_rank", "rank_bound"), strict=False):
            _line(panel, rows, column, look, label=LABELS[normalization])
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
            line = NORMALIZATIONS[normalization].line
            axes[2].plot(rows["epoch"], rows["train_accuracy"], **line)
        axes[2].set(xlabel="epoch", ylabel="training accuracy", ylim=(0, 1.03))
        axes[2].set_title("rate chosen")
        columns = ["learning_rate", "train_loss", "train_accuracy", "test_accuracy"]
        ends = summarize(last_epoch(best), ["normalization"], columns)
        summary = summary.merge(ends, on="normalization")
    axes[0].legend()
    shown = [c for c in summary.columns if not c.endswith(("_ci", "_low", "_high"))]
    return picture, summary[shown]
