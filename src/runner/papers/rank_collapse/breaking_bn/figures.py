"""Drawings of study `breaking_bn`: Figures 5, 7, 10 and 13, and the quick look at one run."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.data import CLASSES
from runner.papers.rank_collapse.breaking_bn.tables import LABELS, MEASURES, paths
from runner.papers.rank_collapse.looks import METHODS
from runner.results.captions import dataset
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.spreads import spread
from runner.results.statistics import last_epoch
from runner.results.style_before import band, beside, guide, name_hidden, points, sparse, subplots

COLUMNS = {
    "train_accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
    "rank": "rank of the last hidden layer",
    "rank_bound": "r of the last hidden layer",
    "gradient_alignment": "alignment of gradients",
}

TICKS = (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
"""Of logarithmic axes."""

ARCHITECTURES = {"vgg19": "VGG-19", "resnet50": "ResNet-50"}


def curves(tables: Tables) -> pd.DataFrame:
    """Median and range of every measure by method, rate and epoch."""
    keys = ["method", "learning_rate", "fastest", "epoch", "steps"]
    return spread(paths(tables), keys, list(COLUMNS))


def _lines(axes: Axes, drawn: pd.DataFrame, column: str, x: str) -> dict[str, float]:
    """One measure through training: a line and the band of its range for each method.

    At the rate chosen for it; the other rates are thin lines. Gives back where the lines end.
    """
    compared = drawn.groupby("method")["learning_rate"].nunique().max() > 1
    ends = {}
    for place, (method, look) in enumerate(METHODS.items()):
        rows = drawn[drawn["method"] == method].dropna(subset=column)
        for rate, at in rows.groupby("learning_rate"):
            if not at["fastest"].any():
                axes.plot(at[x], at[column], color=look.color, linewidth=points(0.7), alpha=0.8)
                continue
            label = f"{LABELS[method]}, rate {rate:g}" if compared else LABELS[method]
            mark = {"markevery": sparse(len(at), place, 5), "label": label}
            axes.plot(at[x], at[column], **look.both | mark)
            band(axes, at[x], at[f"{column}_low"], at[f"{column}_high"], look.color)
            ends[look.label] = at[column].iloc[-1]
    axes.set(xlabel={"epoch": "epoch", "steps": "iterations"}[x], ylabel=COLUMNS[column])
    return ends


def _scale(axes: Axes, drawn: pd.DataFrame, column: str, logarithmic: bool) -> None:
    """The vertical axis, with a line at the accuracy of a guess."""
    is_accuracy = column.endswith("accuracy")
    axes.xaxis.get_major_locator().set_params(integer=True)
    if not logarithmic:
        axes.set_ylim(0, None if column in ("rank", "rank_bound") else 1.03)
    else:
        if is_accuracy:  # what has diverged has none
            lowest = drawn[f"{column}_low"].where(drawn[f"{column}_low"] > 0).min()
            axes.set_ylim(0.8 * np.fmin(lowest, 1 / CLASSES), 1.15)
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        shown = [tick for tick in TICKS if low <= tick <= high]
        axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
        axes.minorticks_off()
    if is_accuracy:
        axes.axhline(1 / CLASSES, **guide())
        beside(axes, 1 / CLASSES, "guess")


MARKS = (
    " Lines are medians over the replicates at the rate chosen for each method on replicates of its"
    " own, bands their whole range; thin lines are the medians at the other rates that were tried."
    " Dotted: the accuracy of a guess. Ranks and gradients are measured on N samples."
)


@figure(
    "rank-fig5",
    caption="Training accuracy, rank of the last hidden layer and its lower bound r through"
    " training." + MARKS,
    columns=("train_accuracy", "rank", "rank_bound"),
    logarithmic=("rank", "rank_bound"),
)
@figure(
    "rank-fig7",
    caption="Training accuracy, and the lower bound r of the rank of the last hidden layer, through"
    " training." + MARKS,
    columns=("train_accuracy", "rank_bound"),
    x="steps",
)
@figure(
    "rank-fig10",
    caption="Training accuracy, and alignment of the gradients of different examples, through"
    " training." + MARKS + " Where the last hidden layer is zero there is no alignment to draw.",
    columns=("train_accuracy", "gradient_alignment"),
    logarithmic=("train_accuracy",),
)
@figure(
    "rank-fig13",
    caption="Training accuracy, rank of the last hidden layer and its lower bound r through"
    " training." + MARKS,
    columns=("train_accuracy", "rank", "rank_bound"),
    logarithmic=("rank", "rank_bound"),
)
def draw(
    tables: Tables, columns: tuple[str, ...], x: str = "epoch", logarithmic: tuple[str, ...] = ()
) -> tuple[Figure, pd.DataFrame]:
    """One panel for each measure, one line for each method; x: `epoch` or `steps`."""
    drawn = curves(tables)
    picture, axes = subplots(1, len(columns), size=(3.6 * len(columns) + 0.6, 3.8))
    for panel, column in zip(axes, columns, strict=True):
        ends = _lines(panel, drawn, column, x)
        _scale(panel, drawn, column, column in logarithmic)
        if not column.endswith("accuracy"):
            name_hidden(panel, ends)
    handles, labels = axes[-1].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=2)
    picture.suptitle(_title(tables["training"], several=not drawn["fastest"].all()), fontsize=9)
    return picture, drawn


def _title(training: pd.DataFrame, several: bool) -> str:
    """What was trained, on what; several: rates."""
    first = training.iloc[0]
    size = f"{first['multiplier']:g} x channels" if first["multiplier"] != 1 else "full width"
    title = f"{dataset(training)}, {ARCHITECTURES[first['architecture']]} at {size}"
    rates = "at the rate chosen; thin: rates tried" if several else ""
    return f"{title}: median and range {rates}".rstrip()


@overview
def overview_breaking_bn(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: accuracy, rank, r and alignment through training."""
    columns = ("train_accuracy", "rank", "rank_bound", "gradient_alignment")
    picture, drawn = draw(tables, columns)
    before = drawn.loc[drawn["epoch"] == 0, ["method", *MEASURES]]
    shown = ["method", "train_loss", "train_accuracy", "test_accuracy", *MEASURES]
    after = last_epoch(tables["training"])[shown].groupby("method", sort=False).mean()
    return picture, before.merge(after.reset_index(), on="method", suffixes=("_before", ""))
