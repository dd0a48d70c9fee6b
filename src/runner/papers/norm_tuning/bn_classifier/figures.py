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
from runner.results.style import GREY, SHADE, Look, name_ends, panel, sheet, ticks

ADAM = METHODS["adam"]


def say_classifier(tables: Tables) -> str:
    """How near the construction comes to its target, and where training the same layers ends."""
    agreement = of_network(tables, "construction", "agreement")
    built, trained = (
        of_network(tables, network, "test_accuracy").median()
        for network in ("construction", "bn_only")
    )
    return (
        f"In {(agreement == 1).sum()} of {len(agreement)} frozen networks the construction predicts"
        f" every digit as its target does (test accuracy {built:.3f}; training the same layers"
        f" reaches {trained:.3f})"
    )


def draw_classifier(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Left: test accuracy by epoch. Right: where each network ends, replicate by replicate."""
    picture, ((left, right),) = sheet(gap=1.75, right=0.4, ratios=[1.15, 1])
    with or_empty(left):
        _training(left, tables)
    with or_empty(right):
        _ends(right, tables)
    panel(left, "a", "test accuracy", "epoch")
    panel(right, "b", "test accuracy at the end")
    keys = ["network", "replicate"]
    return picture, tables["metrics"][[*keys, "parameters", "train_accuracy", "test_accuracy"]]


def _training(axes: Axes, tables: Tables) -> None:
    """Median and range of the test accuracy while scales and shifts are trained."""
    by_epoch = tables["training"].groupby("epoch")["test_accuracy"]
    median = by_epoch.median()
    built = of_network(tables, "construction", "test_accuracy")
    ends = [median.index.min(), max(median.index.max(), median.index.min() + 1)]
    axes.set_xlim(*ends)
    CONSTRUCTION.band(axes, ends, [built.min()] * 2, [built.max()] * 2)
    CONSTRUCTION.line(axes, ends, [built.median()] * 2, marker="")
    ADAM.band(axes, median.index, by_epoch.min(), by_epoch.max())
    ADAM.line(axes, median.index, median, marker="")
    low = by_epoch.min().quantile(0.1)
    axes.set_ylim(low - 0.03 if np.isfinite(low) else 0.0, 1.0)
    names = [(built.median(), "construction", CONSTRUCTION)]
    name_ends(axes, [*names, (median.iloc[-1], "Adam on scales\nand shifts", ADAM)])


NETWORKS = {
    "target": ("target", Look("#000000", "^")),
    "construction": ("constructed", CONSTRUCTION),
    "bn_only": ("trained", ADAM),
}


def _ends(axes: Axes, tables: Tables) -> None:
    """The accuracy of every replicate, a column for each kind of network."""
    columns = [of_network(tables, network, "test_accuracy") for network in NETWORKS]
    ends = pd.concat(columns, axis=1, keys=NETWORKS)
    axes.set_xlim(-0.35, len(NETWORKS) - 0.65)
    for _, row in ends.iterrows():
        axes.plot(range(len(NETWORKS)), row, color=GREY, linewidth=0.9, alpha=0.5, zorder=1)
    for place, (network, (_, look)) in enumerate(NETWORKS.items()):
        shift = np.linspace(-0.09, 0.09, len(ends))
        look.line(axes, place + shift, ends[network], linestyle="", markersize=6)
        axes.plot([place - 0.2, place + 0.2], [ends[network].median()] * 2, color=look.ink, lw=2)
    low, high = ends.min().min(), ends.max().max()
    room = max(0.005, 0.15 * (high - low))
    if np.isfinite([low, high]).all():
        axes.set_ylim(low - room, high + room)
    ticks(axes.xaxis, range(len(NETWORKS)), [text for text, _ in NETWORKS.values()])
    axes.axvspan(-0.35, 0.35, color=SHADE, linewidth=0, zorder=0)


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the test accuracy while training, and that of the construction."""
    picture, ((axes,),) = sheet(1, 1, height=3.4, right=1.6)
    _training(axes, tables)
    panel(axes, "a", "test accuracy", "epoch")
    columns = ["parameters", "train_accuracy", "test_accuracy", "agreement", "max_abs_error"]
    return picture, tables["metrics"].groupby("network", sort=False)[columns].median().reset_index()


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
