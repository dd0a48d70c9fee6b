"""Drawings of study `bn_classifier`."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from runner.papers.norm_tuning.bn_classifier.tables import of_network
from runner.papers.norm_tuning.looks import METHODS
from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.style import GREY, panel, sheet, ticks

NETWORKS = {
    "target": METHODS["dense"],
    "construction": METHODS["teacher construction"],
    "bn_only": METHODS["adam"],
}


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
    """The accuracy of every replicate, a column for each kind of network."""
    columns = [of_network(tables, network, "test_accuracy") for network in NETWORKS]
    picture, ((axes,),) = sheet(1, 1)
    panel(axes, "", "test accuracy at the end")
    ends = pd.concat(columns, axis=1).to_numpy().T
    places = np.add.outer(range(len(ends)), np.linspace(-0.09, 0.09, ends.shape[1]))
    axes.plot(places, ends, color=GREY, linewidth=0.9, alpha=0.5, zorder=1)
    for look, x, accuracy in zip(NETWORKS.values(), places, ends, strict=True):
        look.line(axes, x, accuracy, linestyle="", markersize=6)
        axes.plot(x[[0, -1]], [np.median(accuracy)] * 2, color=look.ink, lw=2)
    ticks(axes.xaxis, range(len(NETWORKS)), ["target", "constructed", "trained"])
    shown = ["network", "replicate", "parameters", "train_accuracy", "test_accuracy"]
    return picture, tables["metrics"][shown]


overview = draw_classifier

HEADLINE = ["train_accuracy", "test_accuracy", "agreement", "max_abs_error"]

FIGURES = [
    Drawing(
        "bn-classifier",
        draw_classifier,
        whose="ours",
        findings=[Finding(say_classifier, holds=["classifier-in-batch-norm"])],
        caption="A digit classifier inside a frozen random network, by setting the parameters of"
        " its BatchNorm layers alone. Test accuracy of each replicate: the target, the"
        " construction from it, and training at equal parameters by Adam; a line joins what belongs"
        " together, strokes are medians. Data: scikit-learn's digits.",
    ),
]
