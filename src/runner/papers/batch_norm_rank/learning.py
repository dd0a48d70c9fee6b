"""How the paper's words are read: when a network is deep, and when it has learned."""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import pandas as pd

from runner.data import CLASSES

DEEP = 10
"""Layers above which the paper finds vanilla networks unable to learn (Section 1.1)."""

LITTLE = 0.05
"""A learned share below this is read as `essentially unable to learn`."""

LEARNED = 0.5
"""A learned share above this, nearer to a perfect fit than to a guess, as having learned."""


Numbers = TypeVar("Numbers", pd.Series, pd.DataFrame)


END_OF_GRID = {"": "", "smallest": " (the smallest offered)", "largest": " (the largest offered)"}
"""What is said of a chosen rate by where it stands in the grid; a better one may lie beyond."""


def end_of_grid(rate: float, offered: Iterable[float]) -> str:
    """`smallest` or `largest` where a rate is that of several; empty where it is neither."""
    rates = set(offered)
    if len(rates) < 2:
        return ""
    return {min(rates): "smallest", max(rates): "largest"}.get(rate, "")


def learned_share(accuracy: Numbers) -> Numbers:
    """Return how far an accuracy has come from a guess (0) to a perfect fit (1)."""
    return (accuracy - 1 / CLASSES) / (1 - 1 / CLASSES)


NOTHING_LEARNED = dict.fromkeys(("train_accuracy", "test_accuracy"), 0.0)
NOTHING_LEARNED |= dict.fromkeys(("train_loss", "test_loss"), np.inf)
"""What a network counts from where it has diverged: as worse than any that has not."""


def with_divergence(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of training in which a network whose training loss is not finite has learned nothing."""
    diverged = ~np.isfinite(rows["train_loss"].astype(float))
    columns = [name for name in NOTHING_LEARNED if name in rows]
    return rows.assign(**{n: rows[n].mask(diverged, NOTHING_LEARNED[n]) for n in columns})
