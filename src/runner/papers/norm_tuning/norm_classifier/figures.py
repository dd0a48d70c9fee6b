"""Draw the figure of study `norm_classifier`."""

import pandas as pd
from matplotlib.figure import Figure

from runner.papers.norm_tuning.looks import strip
from runner.papers.norm_tuning.names import NAMES
from runner.results.drawing import Drawing, Finding
from runner.results.rows import Tables, select, spread
from runner.results.style import panel, sheet, ticks

METHODS = ("target", "construction", "active", "usual")
ROWS = {method: NAMES["method"][method] for method in METHODS}
"""Names and looks of the methods, from the highest row to the lowest."""

MEASURES = {
    "train_loss": ("training loss", "cross-entropy"),
    "test_accuracy": ("test accuracy", "fraction of test images"),
}
"""Title and x-axis of each panel, by column."""


def draw_copies(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `norm-classifier`: training losses in panel (a), test accuracies in panel (b).

    There is a row of dots for each method. A dot is a replicate, a stroke is the median. Returns
    the picture, and a table with median and range of the numbers of each method.
    """
    metrics = tables["metrics"]
    picture, (panels,) = sheet(height=3.3, left=1.35, sharey=True)
    for axes, letter, (column, words) in zip(panels, "ab", MEASURES.items(), strict=True):
        for height, (method, name) in enumerate(ROWS.items()):
            strip(axes, select(metrics, method=method)[column], height, name.look)
        panel(axes, letter, *words)
    panels[0].set_xscale("log")
    ticks(panels[0].yaxis, range(len(ROWS)), [name.drawn for name in ROWS.values()])
    panels[0].set_ylim(len(ROWS) - 0.5, -0.5)
    ticks(panels[0].xaxis, [0.01, 0.03, 0.1])
    return picture, spread(metrics, ["method", "target_width"], [*MEASURES, "agreement"])


def caption_copies(tables: Tables) -> str:
    """Return the caption of figure `norm-classifier`, with the widths of the classifiers."""
    widths = ", ".join(f"{d:.0f}" for d in sorted(tables["metrics"]["target_width"].unique()))
    return (
        f"Frozen random layers copy a classifier of digits (64 → {widths} → 10): γ and β are set by"
        " the construction, or trained on the labels. (a) shows the training loss, (b) the test"
        " accuracy. Active ReLUs have the shifts of Lemma 7. Adam takes 300 steps on all images;"
        " its learning rate falls from 0.1 to 0 along a cosine (classifier: constant, 0.01)."
    )


def say_labels(tables: Tables) -> str:
    """Return the headline of figure `norm-classifier`, with two median training losses.

    They are those of the classifier, and of its frozen copy whose gamma and beta were trained.
    """
    losses = tables["metrics"].groupby("method")["train_loss"].median()
    return (
        "Trained on labels, γ and β of a frozen copy reach a smaller training loss than the"
        f" classifier itself ({losses['usual']:.2g} instead of {losses['target']:.2g})"
    )


overview = draw_copies

HEADLINE = ["train_loss", "test_accuracy", "agreement"]

FIGURES = [
    Drawing(
        "norm-classifier",
        draw_copies,
        whose="our experiment",
        findings=[Finding(say_labels, holds=["classifier-copied", "labels-beat-target"])],
        marks="dots: replicates, strokes: medians",
        caption=caption_copies,
    ),
]
