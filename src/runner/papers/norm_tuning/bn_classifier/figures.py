"""Drawings of study `bn_classifier`."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.bn_classifier.tables import of_network
from runner.papers.norm_tuning.looks import CONSTRUCTION, METHODS
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.style import GREY, name_ends, panel, sheet, ticks

ADAM = METHODS["adam"]
NETWORKS = {"target": METHODS["dense"], "construction": CONSTRUCTION, "bn_only": ADAM}


def say_classifier(tables: Tables) -> str:
    """How near the construction comes to its target, and where training the same layers ends."""
    agreement = of_network(tables, "construction", "agreement")
    built = of_network(tables, "construction", "test_accuracy").median()
    trained = of_network(tables, "bn_only", "test_accuracy").median()
    return (
        f"In {(agreement == 1).sum()} of {len(agreement)} frozen networks the construction predicts"
        f" every digit as its target does (test accuracy {built:.3f}; training the same layers"
        f" reaches {trained:.3f})"
    )


def draw_classifier(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Left: test accuracy by epoch. Right: where each network ends, replicate by replicate."""
    picture, ((left, right),) = sheet(gap=1.95, right=0.3, ratios=[1.15, 1])
    with or_empty(left):
        _training(left, tables)
    with or_empty(right):
        _ends(right, tables)
    panel(left, "a", "test accuracy", "epoch")
    panel(right, "b", "test accuracy at the end")
    columns = ["network", "replicate", "parameters", "train_accuracy", "test_accuracy"]
    return picture, tables["metrics"][columns]


overview = draw_classifier


def _training(axes: Axes, tables: Tables) -> None:
    """Median and range of the test accuracy while scales and shifts are trained."""
    by_epoch = tables["training"].groupby("epoch")["test_accuracy"]
    median, low = by_epoch.median(), by_epoch.min()
    built = of_network(tables, "construction", "test_accuracy")
    ends = median.index[[0, -1]]
    CONSTRUCTION.band(axes, ends, [built.min()] * 2, [built.max()] * 2)
    CONSTRUCTION.line(axes, ends, [built.median()] * 2, marker="")
    ADAM.band(axes, median.index, low, by_epoch.max())
    ADAM.line(axes, median.index, median, marker="")
    axes.set_ylim(np.nan_to_num(low.quantile(0.1)) - 0.03, 1.0)
    names = [(built.median(), "construction", CONSTRUCTION)]
    name_ends(axes, [*names, (median.iloc[-1], "Adam on scales\nand shifts", ADAM)])


def _ends(axes: Axes, tables: Tables) -> None:
    """The accuracy of every replicate, a column for each kind of network."""
    columns = [of_network(tables, network, "test_accuracy") for network in NETWORKS]
    ends = pd.concat(columns, axis=1)
    axes.plot(ends.to_numpy().T, color=GREY, linewidth=0.9, alpha=0.5, zorder=1)
    for place, (column, look) in enumerate(zip(columns, NETWORKS.values(), strict=True)):
        shift = np.linspace(-0.09, 0.09, len(column))
        look.line(axes, place + shift, column, linestyle="", markersize=6)
        axes.plot([place - 0.2, place + 0.2], [column.median()] * 2, color=look.ink, lw=2)
    ticks(axes.xaxis, range(len(NETWORKS)), ["target", "constructed", "trained"])


HEADLINE = ["train_accuracy", "test_accuracy", "agreement", "max_abs_error"]

FIGURES = [
    Drawing(
        "bn-classifier",
        draw_classifier,
        whose="ours",
        findings=[Finding(say_classifier, holds=["classifier-in-batch-norm"])],
        caption="A digit classifier inside a frozen random network, by setting the parameters of"
        " its BatchNorm layers alone. (a) Test accuracy while scales and shifts are trained by"
        " Adam, and of the construction. Lines are medians over the replicates, bands their whole"
        " range. (b) Test accuracy of each replicate: the target, the construction from it, and"
        " training at equal parameters; a line joins what belongs together. Data: scikit-learn's"
        " digits.",
    ),
]
