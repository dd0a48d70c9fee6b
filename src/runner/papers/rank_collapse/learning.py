"""When a network counts as having learned, and as deep: how the paper's words are read."""

import pandas as pd

from runner.data import CLASSES

DEEP = 10
"""Layers above which the paper finds vanilla networks unable to learn (Section 1.1)."""

LITTLE = 0.05
"""A learned share below this is read as `essentially unable to learn`."""


def learned_share(accuracy: pd.Series) -> pd.Series:
    """How far an accuracy has come from a guess (0) to a perfect fit (1)."""
    return (accuracy - 1 / CLASSES) / (1 - 1 / CLASSES)
