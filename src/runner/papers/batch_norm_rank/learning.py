"""Say how the paper's words are read: deep, learned, and the order of ranks."""

from collections.abc import Iterable
from itertools import combinations
from typing import TypeVar

import numpy as np
import pandas as pd

from runner.data import CLASSES
from runner.results.rows import NoRows

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
    """Return `smallest` or `largest` where a rate is that of several; empty where it is neither."""
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
    """Return rows of training where a network without a finite loss has learned nothing."""
    diverged = ~np.isfinite(rows["train_loss"].astype(float))
    columns = [name for name in NOTHING_LEARNED if name in rows]
    return rows.assign(**{n: rows[n].mask(diverged, NOTHING_LEARNED[n]) for n in columns})


def least_lead(ranks: pd.DataFrame) -> pd.Series:
    """Return for each replicate the least log2(larger rank / smaller rank) of two networks after
    training has begun; it is below 0 where the order of a pair has changed.

    ranks: a column for each network, by replicate and epoch. Which of two is the larger is said by
    epoch 0; two that are equal there have no order.
    """
    if ranks.shape[1] < 2:
        raise NoRows("rows: two networks to compare")
    logs = np.log2(ranks)
    before, later = logs.xs(0, level="epoch"), logs.drop(index=0, level="epoch")
    leads = []
    for one, other in combinations(ranks, 2):
        order = np.sign(before[one] - before[other]).replace(0, np.nan)
        leads.append((later[one] - later[other]).mul(order, level="replicate"))
    return pd.concat(leads, axis=1).min(axis=1).groupby("replicate").min()
