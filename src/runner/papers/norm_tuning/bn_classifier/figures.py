"""Drawings of study `bn_classifier`."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.bn_classifier.tables import of_network
from runner.results.claims import Tables
from runner.results.figures import figure, overview

STYLES = {
    "construction": ("tab:green", "s", "construction from the target"),
    "bn_only": ("tab:blue", "o", "Adam on scales and shifts"),
}


@figure("bn-classifier")
def draw_classifier(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Left: test accuracy by epoch. Right: where each network ends, replicate by replicate."""
    figure, (curve, ends) = plt.subplots(1, 2, figsize=(8.4, 3.5))
    _draw_training(curve, tables)
    target = of_network(tables, "target", "test_accuracy")
    for network, (color, marker, label) in STYLES.items():
        found = of_network(tables, network, "test_accuracy")
        ends.plot(target[found.index], found, marker, color=color, label=label, alpha=0.8)
    low, high = target.min() - 0.005, target.max() + 0.005
    ends.plot([low, high], [low, high], ":", color="grey", label="equal")
    ends.set(xlabel="test accuracy of the target", ylabel="test accuracy", title="each replicate")
    ends.legend()
    keys = ["network", "replicate"]
    return figure, tables["metrics"][[*keys, "parameters", "train_accuracy", "test_accuracy"]]


def _draw_training(axes: Axes, tables: Tables) -> None:
    """Median and range of the test accuracy while scales and shifts are trained."""
    by_epoch = tables["training"].groupby("epoch")["test_accuracy"]
    color, _, label = STYLES["bn_only"]
    axes.plot(by_epoch.median(), color=color, label=label)
    axes.fill_between(
        by_epoch.min().index, by_epoch.min(), by_epoch.max(), color=color, alpha=0.2, lw=0
    )
    color, _, label = STYLES["construction"]
    built = of_network(tables, "construction", "test_accuracy")
    axes.axhline(built.median(), color=color, label=label)
    axes.axhspan(built.min(), built.max(), color=color, alpha=0.15, lw=0)
    axes.set(xlabel="epoch", ylabel="test accuracy", title="median and range of the replicates")
    axes.legend()


@overview
def overview_classifier(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the test accuracy while training, and that of the construction."""
    figure, axes = plt.subplots(figsize=(5, 3.6))
    _draw_training(axes, tables)
    columns = ["parameters", "train_accuracy", "test_accuracy", "agreement", "max_abs_error"]
    return figure, tables["metrics"].groupby("network", sort=False)[columns].median().reset_index()
