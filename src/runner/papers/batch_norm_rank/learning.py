"""Definitions of paper B's terms "deep" and "learned"; functions for learning rates and ranks."""

from collections.abc import Iterable
from itertools import combinations
from typing import TypeVar

import numpy as np
import pandas as pd

from runner.data import CLASSES
from runner.results.rows import NoRows, Tables

DEEP = 10
"""Number of layers above which the paper finds plain networks unable to learn (Section 1.1)."""

LITTLE = 0.05
"""Learned fraction below which the paper would call a network "essentially unable to learn"."""

LEARNED = 0.5
"""Learned fraction above which a network has learned: nearer to a perfect fit than to chance."""


Numbers = TypeVar("Numbers", pd.Series, pd.DataFrame)


END_OF_GRID = {
    "": "",
    "smallest": " (the smallest of the grid)",
    "largest": " (the largest of the grid)",
}
"""Caption text for a learning rate at an end of the grid; a better one may lie beyond."""


def end_of_grid(rate: float, offered: Iterable[float]) -> str:
    """Return `smallest` or `largest` if a learning rate is an end of its grid, else an empty text.

    offered: the learning rates of the grid. A grid with one learning rate has no ends.
    """
    rates = set(offered)
    if len(rates) < 2:
        return ""
    return {min(rates): "smallest", max(rates): "largest"}.get(rate, "")


def chance_level(tables: Tables) -> float:
    """Return the accuracy at chance level, 1 / number of classes.

    The number is read from the column `classes`, which tables of a user's images have. Without this
    column it is ten, as in all datasets of the program.
    """
    numbers = [rows["classes"].min() for rows in tables.values() if "classes" in rows]
    return 1 / min(numbers, default=CLASSES)


def learned_share(accuracy: Numbers, chance: float) -> Numbers:
    """Return the learned fraction (accuracy - chance) / (1 - chance) of accuracies.

    The learned fraction is 0 at chance level and 1 for a perfect fit. chance: the accuracy at
    chance level.
    """
    return (accuracy - chance) / (1 - chance)


NOTHING_LEARNED = dict.fromkeys(("train_accuracy", "test_accuracy"), 0.0)
NOTHING_LEARNED |= dict.fromkeys(("train_loss", "test_loss"), np.inf)
"""Values of a diverged network: worse than those of any other network."""


def with_divergence(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of training in which diverged networks have accuracy zero and infinite loss.

    A network has diverged in a row if its `train_loss` in this row is not finite, and on the test
    images if its `test_loss` is not finite.
    """
    diverged = ~np.isfinite(rows["train_loss"].astype(float))
    tested = diverged | ~np.isfinite(rows.get("test_loss", rows["train_loss"]).astype(float))
    where = {name: tested if name.startswith("test") else diverged for name in NOTHING_LEARNED}
    columns = [name for name in NOTHING_LEARNED if name in rows]
    return rows.assign(**{n: rows[n].mask(where[n], NOTHING_LEARNED[n]) for n in columns})


def least_lead(ranks: pd.DataFrame) -> pd.Series:
    """Return for each replicate the least log2 ratio of two networks' ranks, over pairs and epochs.

    The numerator is the rank of the network that has the larger rank at epoch 0. The minimum is
    over all later epochs and all pairs of networks. A negative result means that the ranks of a
    pair changed their order. Pairs with equal ranks at epoch 0 are excluded.

    ranks: a column for each network, a row for each replicate and epoch (index levels `replicate`
    and `epoch`). Raises NoRows if there is only one network.
    """
    if ranks.shape[1] < 2:
        raise NoRows("the order of the ranks needs two networks to compare")
    logs = np.log2(ranks)
    before, later = logs.xs(0, level="epoch"), logs.drop(index=0, level="epoch")
    leads = []
    for one, other in combinations(ranks, 2):
        order = np.sign(before[one] - before[other]).replace(0, np.nan)
        leads.append((later[one] - later[other]).mul(order, level="replicate"))
    return pd.concat(leads, axis=1).min(axis=1).groupby("replicate").min()
