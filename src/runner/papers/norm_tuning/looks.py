"""Colors and markers of methods and theorems in all figures of paper A.

A blue line means that gamma and beta of the normalization layers are trained. A green line means
that gamma and beta are computed from the target network, an orange line that they are computed from
a trained dense network. A black line is this dense network. Hollow markers show methods that are
not in the paper.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from runner.papers.norm_tuning.names import NAMES
from runner.results import style
from runner.results.looks import Look, looks_of

METHODS = looks_of(NAMES["series"])
"""Looks of the series of figures 4 and 5. Later series are drawn on top, and are thin or dashed."""

CONSTRUCTION = METHODS["teacher construction"]
BATCH_STATISTICS, LAYER_NORM, LEAST = Look(style.SKY), Look(style.VERMILION, "D"), Look(style.INK)
FITTED = Look(style.PURPLE, hollow=True)

THEOREMS = looks_of(NAMES["theorem"])
"""Looks of the theorems. Theorems with many networks come first, at the bottom."""


def strip(axes: Axes, values: Any, y: float, look: Look) -> None:
    """Draw numbers as dots at height y, and a vertical stroke at their median.

    values: one number for each replicate, at its place on the x-axis. look: color and marker.
    """
    look.each(axes, values, np.full(len(values), y))
    axes.plot(np.median(values), y, "|", color=look.ink, markersize=9, markeredgewidth=2.4)
