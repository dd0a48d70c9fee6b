"""Colors and markers of methods and theorems in all figures of paper A.

A blue line means that gamma and beta of the normalization layers are trained. A green line means
that gamma and beta are computed from the target network, an orange line that they are computed from
a trained dense network. A black line is this dense network. Hollow markers show methods that are
not in the paper.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from runner.results import style
from runner.results.style import Look

METHODS = {
    "student construction": Look(style.ORANGE, "", width=6.0),
    "dense": Look("#000000", "^", style.DASHED, 1.8),
    "dense by adam": Look(style.GREY, "^", style.DASHED, 1.8, hollow=True),
    "sgd with fixed statistics": Look(style.SKY, dashes=style.DASHED, hollow=True),
    "sgd again": Look(style.BLUE, "o", style.DASHED, 1.5, hollow=True),
    "sgd": Look(style.BLUE),
    "teacher construction": Look(style.GREEN, "s", width=3.4),
    "corrected construction": Look(style.OLIVE, "s", style.DASHED, hollow=True),
    "adam again": Look(style.NAVY, "s", style.DASHED, 1.5, hollow=True),
    "adam": Look(style.NAVY, "D", hollow=True),
    "adam from a shift": Look(style.PURPLE, "v", style.DASHED),
    "sgd, ReLUs kept on": Look(style.SKY, hollow=True),
    "adam, ReLUs kept on": Look(style.VERMILION, "D"),
    "adam in coordinates of K": Look(style.OLIVE, "s", "", hollow=True),
}
"""Looks of the series of figures 4 and 5. Later series are drawn on top, and are thin or dashed."""

CONSTRUCTION = METHODS["teacher construction"]
BATCH_STATISTICS, LAYER_NORM, LEAST = Look(style.SKY), Look(style.VERMILION, "D"), Look(style.INK)
FITTED = Look(style.PURPLE, hollow=True)

THEOREMS = {"low_rank": Look(style.NAVY), "wide": CONSTRUCTION, "deep": Look(style.PURPLE, "D")}
"""Looks of the theorems. Theorems with many networks come first, at the bottom."""


def strip(axes: Axes, values: Any, y: float, look: Look) -> None:
    """Draw numbers as dots at height y, and a vertical stroke at their median.

    values: one number for each replicate, at its place on the x-axis. look: color and marker.
    """
    look.each(axes, values, np.full(len(values), y))
    axes.plot(np.median(values), y, "|", color=look.ink, markersize=9, markeredgewidth=2.4)
