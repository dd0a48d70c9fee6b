"""How the paper's words are read: when a network is deep, when it has learned, at which rate."""

from typing import TypeVar

import pandas as pd

from runner.data import CLASSES
from runner.results.statistics import best_rates

DEEP = 10
"""Layers above which the paper finds vanilla networks unable to learn (Section 1.1)."""

LITTLE = 0.05
"""A learned share below this is read as `essentially unable to learn`."""

LEARNED = 0.5
"""A learned share above this, nearer to a perfect fit than to a guess, as having learned."""


Numbers = TypeVar("Numbers", pd.Series, pd.DataFrame)


def learned_share(accuracy: Numbers) -> Numbers:
    """How far an accuracy has come from a guess (0) to a perfect fit (1)."""
    return (accuracy - 1 / CLASSES) / (1 - 1 / CLASSES)


def at_chosen_rate(training: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The rows of training of each combination of `keys` at the rate chosen for it.

    TO BE DELETED, with `best_rates`, when the kept tables are computed again: only those of the
    studies' version 1 have every rate on every replicate, and no column `selected_on`.
    """
    return training if "selected_on" in training else best_rates(training, keys)
