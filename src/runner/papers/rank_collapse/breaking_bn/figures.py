"""Drawings of study `breaking_bn`: Figures 5, 7, 10 and 13, and the quick look at one run."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.data import CLASSES
from runner.papers.rank_collapse.breaking_bn.tables import LABELS, MEASURES, paths
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.statistics import last_epoch, summarize

STYLES = {
    "batch_norm": {"color": "tab:blue"},
    "batch_norm_no_mean": {"color": "tab:orange", "linestyle": (0, (4, 1))},
    "batch_norm_asymmetric": {"color": "tab:green", "linewidth": 2.6},
    "vanilla": {"color": "black", "linewidth": 1.1},
    "vanilla_100x": {"color": "tab:red", "linestyle": "-."},
    "vanilla_random_pixels": {"color": "tab:purple", "linestyle": (0, (2, 1.5))},
}
"""Blue and orange are the paper's in figure 7. Lines that may lie on each other differ in style."""

ROOT = {"color": "grey", "linestyle": ":", "linewidth": 1.2}

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
    """Mean of every measure by method, rate and epoch, with the confidence interval."""
    keys = ["method", "learning_rate", "fastest", "epoch", "steps"]
    return summarize(paths(tables), keys, list(COLUMNS))


def _lines(axes: Axes, drawn: pd.DataFrame, column: str, x: str) -> None:
    """One measure through training: a line and the band of its interval for each method.

    At the rate chosen for it; the other rates are thin lines.
    """
    compared = drawn.groupby("method")["learning_rate"].nunique().max() > 1
    for method, style in STYLES.items():
        rows = drawn[drawn["method"] == method].dropna(subset=column)
        for rate, at in rows.groupby("learning_rate"):
            if not at["fastest"].any():
                axes.plot(at[x], at[column], color=style["color"], linewidth=0.7, alpha=0.8)
                continue
            label = f"{LABELS[method]}, rate {rate:g}" if compared else LABELS[method]
            axes.plot(at[x], at[column], **style | {"label": label})
            band = at[f"{column}_low"], at[f"{column}_high"]
            axes.fill_between(at[x], *band, color=style["color"], alpha=0.18, lw=0)
    axes.set(xlabel={"epoch": "epoch", "steps": "iterations"}[x], ylabel=COLUMNS[column])


def _scale(axes: Axes, column: str, logarithmic: bool) -> None:
    """The vertical axis, with a line at the accuracy of a guess."""
    if column.endswith("accuracy"):
        axes.axhline(1 / CLASSES, **ROOT)
    if not logarithmic:
        axes.set_ylim(0, None if column in ("rank", "rank_bound") else 1.03)
        return
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    shown = [tick for tick in TICKS if low <= tick <= high]
    axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
    axes.minorticks_off()


@figure(
    "rank-fig5",
    columns=("train_accuracy", "rank", "rank_bound"),
    logarithmic=("rank", "rank_bound"),
)
@figure("rank-fig7", columns=("train_accuracy", "rank_bound"), x="steps")
@figure(
    "rank-fig10",
    columns=("train_accuracy", "gradient_alignment"),
    logarithmic=("train_accuracy",),
)
@figure(
    "rank-fig13",
    columns=("train_accuracy", "rank", "rank_bound"),
    logarithmic=("rank", "rank_bound"),
)
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
    figure.legend(handles, labels, loc="outside lower center", ncols=2 if len(axes) == 2 else 4)
    figure.suptitle(_title(tables["training"], several=not drawn["fastest"].all()), fontsize=9)
    return figure, drawn


def _title(training: pd.DataFrame, several: bool) -> str:
    """What was trained, on what; several: rates."""
    first = training.iloc[0]
    size = f"{first['multiplier']:g} x channels" if first["multiplier"] != 1 else "full width"
    title = f"{first['data']}, {ARCHITECTURES[first['architecture']]} at {size}"
    rates = "at the rate chosen; thin: rates tried" if several else ""
    return f"{title}: mean and 95 % interval {rates}".rstrip()


@overview
def overview_breaking_bn(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: accuracy, rank, r and alignment through training."""
    columns = ("train_accuracy", "rank", "rank_bound", "gradient_alignment")
    figure, drawn = draw(tables, columns)
    before = drawn.loc[drawn["epoch"] == 0, ["method", *MEASURES]]
    shown = ["method", "train_loss", "train_accuracy", "test_accuracy", *MEASURES]
    after = last_epoch(tables["training"])[shown].groupby("method", sort=False).mean()
    return figure, before.merge(after.reset_index(), on="method", suffixes=("_before", ""))
