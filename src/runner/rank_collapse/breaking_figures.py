"""Drawings of study `breaking_bn`: Figures 5, 7, 10 and 13, and the quick look at one run."""

from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.claims import Tables
from runner.rank_collapse.depth_figures import CLASSES, ROOT
from runner.rank_collapse.statistics import last_epoch, summarize

STYLES = {
    "batch_norm": {"color": "tab:blue", "label": "batch norm"},
    "batch_norm_no_mean": {"color": "tab:orange", "label": "batch norm without mean"},
    "batch_norm_asymmetric": {"color": "tab:green", "label": "batch norm from an asymmetric start"},
    "vanilla": {"color": "black", "label": "vanilla"},
    "vanilla_100x": {"color": "tab:red", "label": "vanilla at 100 x the rate", "linestyle": "-."},
    "vanilla_random_pixels": {
        "color": "tab:purple",
        "label": "vanilla on random pixels",
        "linestyle": (0, (2, 1.5)),
    },
}
"""Blue and orange are the paper's in figure 7."""

COLUMNS = {
    "train_accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
    "rank": "rank of the last hidden layer",
    "rank_bound": "r of the last hidden layer",
    "gradient_alignment": "alignment of gradients",
}
MEASURES = ["rank", "rank_bound", "gradient_alignment"]
"""Known before training too."""

ARCHITECTURES = {"vgg19": "VGG-19", "resnet50": "ResNet-50"}


def paths(tables: Tables) -> pd.DataFrame:
    """One row per method, replicate and epoch, with what is known before training as epoch 0."""
    before = tables["metrics"].rename(columns={"matrix_rank": "rank"})
    before = before[["method", "replicate", *MEASURES]].assign(epoch=0, steps=0)
    return pd.concat([before, tables["training"]], ignore_index=True)


def curves(tables: Tables) -> pd.DataFrame:
    """Mean of every measure by method and epoch, with the confidence interval."""
    return summarize(paths(tables), ["method", "epoch", "steps"], list(COLUMNS))


def _lines(axes: Axes, drawn: pd.DataFrame, column: str, x: str) -> None:
    """One measure through training, a line and the band of its confidence interval each."""
    for method, style in STYLES.items():
        rows = drawn[drawn["method"] == method].dropna(subset=column)
        if rows.empty:
            continue
        axes.plot(rows[x], rows[column], **style)
        band = rows[f"{column}_low"], rows[f"{column}_high"]
        axes.fill_between(rows[x], *band, color=style["color"], alpha=0.18, lw=0)
    axes.set(xlabel={"epoch": "epoch", "steps": "iterations"}[x], ylabel=COLUMNS[column])


def _scale(axes: Axes, column: str, logarithmic: bool) -> None:
    """The vertical axis: accuracies against a guess, ranks from one on."""
    if column.endswith("accuracy"):
        axes.axhline(1 / CLASSES, **ROOT)
    if logarithmic:
        axes.set_yscale("log")
        ticks = [0.1, 0.2, 0.5, 1] if column.endswith("accuracy") else [1, 2, 5, 10, 20, 50, 100]
        low, high = axes.get_ylim()
        shown = [tick for tick in ticks if low <= tick <= high]
        axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
        axes.minorticks_off()
    else:
        axes.set_ylim(0, None if column in ("rank", "rank_bound") else 1.03)


def draw(
    tables: Tables, columns: tuple[str, ...], x: str = "epoch", logarithmic: tuple[str, ...] = ()
) -> tuple[Figure, pd.DataFrame]:
    """One panel for each measure, one line for each method; x: `epoch` or `steps`."""
    drawn = curves(tables)
    figure, axes = plt.subplots(1, len(columns), figsize=(3.5 * len(columns) + 0.6, 3.7))
    for panel, column in zip(axes, columns, strict=True):
        _lines(panel, drawn, column, x)
        _scale(panel, column, column in logarithmic)
    handles, labels = axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figure.suptitle(_title(tables["training"].iloc[0]), fontsize=9)
    return figure, drawn


def _title(first: pd.Series) -> str:
    """What was trained, on what."""
    size = f"{first['multiplier']:g} x channels" if first["multiplier"] != 1 else "full width"
    name = ARCHITECTURES[first["architecture"]]
    return f"{first['data']}, {name} at {size}, SGD; mean and 95 % interval of the replicates"


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: accuracy, rank, r and alignment through training."""
    columns = ("train_accuracy", "rank", "rank_bound", "gradient_alignment")
    figure, drawn = draw(tables, columns)
    before = drawn.loc[drawn["epoch"] == 0, ["method", *MEASURES]]
    shown = ["method", "train_loss", "train_accuracy", "test_accuracy", *MEASURES]
    after = last_epoch(tables["training"])[shown].groupby("method", sort=False).mean()
    return figure, before.merge(after.reset_index(), on="method", suffixes=("_before", ""))


BROKEN = partial(
    draw, columns=("train_accuracy", "rank", "rank_bound"), logarithmic=("rank", "rank_bound")
)
FIGURES = {
    "rank-fig5": BROKEN,
    "rank-fig7": partial(draw, columns=("train_accuracy", "rank_bound"), x="steps"),
    "rank-fig10": partial(
        draw,
        columns=("train_accuracy", "gradient_alignment"),
        logarithmic=("train_accuracy",),
    ),
    "rank-fig13": BROKEN,
}
