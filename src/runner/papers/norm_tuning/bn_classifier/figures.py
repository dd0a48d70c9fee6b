"""Drawings of study `bn_classifier`."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.bn_classifier.tables import of_network
from runner.papers.norm_tuning.looks_before import ADAM, CONSTRUCTION
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.style_before import band, guide, points, sparse, subplots

LOOKS = {"construction": CONSTRUCTION, "bn_only": ADAM}


@figure(
    "bn-classifier",
    caption="Left: test accuracy of a digit classifier inside a frozen network while its scales and"
    " shifts are trained, and of the construction; lines are medians over the replicates, bands"
    " their whole range. Right: where each replicate ends against the target that it was made from;"
    " dotted: equal. Data: scikit-learn's digits.",
)
def draw_classifier(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Left: test accuracy by epoch. Right: where each network ends, replicate by replicate."""
    picture, (curve, ends) = subplots(1, 2, size=(8.4, 3.8))
    _draw_training(curve, tables)
    target = of_network(tables, "target", "test_accuracy")
    for network, look in LOOKS.items():
        found = of_network(tables, network, "test_accuracy")
        hollow = {"fillstyle": "none", "markersize": points(7)} if network == "bn_only" else {}
        ends.plot(target[found.index], found, label=look.label, **look.dots | hollow)
    low, high = target.min() - 0.005, target.max() + 0.005
    ends.plot([low, high], [low, high], label="equal", **guide())
    ends.set(xlabel="test accuracy of the target", ylabel="test accuracy", title="each replicate")
    handles, labels = ends.get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=3)
    keys = ["network", "replicate"]
    return picture, tables["metrics"][[*keys, "parameters", "train_accuracy", "test_accuracy"]]


def _draw_training(axes: Axes, tables: Tables) -> None:
    """Median and range of the test accuracy while scales and shifts are trained."""
    by_epoch = tables["training"].groupby("epoch")["test_accuracy"]
    median = by_epoch.median()
    marks = {"label": ADAM.label, "markevery": sparse(len(median), 0), "linestyle": "-"}
    axes.plot(median, **ADAM.both | marks)
    band(axes, median.index, by_epoch.min(), by_epoch.max(), ADAM.color)
    built = of_network(tables, "construction", "test_accuracy")
    ends = [median.index.min(), median.index.max()]
    axes.plot(ends, [built.median()] * 2, label=CONSTRUCTION.label, **CONSTRUCTION.both)
    axes.axhspan(built.min(), built.max(), color=CONSTRUCTION.color, alpha=0.15, lw=0)
    axes.set(xlabel="epoch", ylabel="test accuracy", title="median and range of the replicates")


@overview
def overview_classifier(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the test accuracy while training, and that of the construction."""
    picture, axes = subplots(size=(5, 3.6))
    _draw_training(axes, tables)
    axes.legend()
    columns = ["parameters", "train_accuracy", "test_accuracy", "agreement", "max_abs_error"]
    return picture, tables["metrics"].groupby("network", sort=False)[columns].median().reset_index()
