"""Quantities of the claims about the features of fully connected networks, by depth."""

import pandas as pd

from runner.results.quantities import Tables, quantity


@quantity(
    "at the depth where training raises it least, the effective rank of the last hidden layer after"
    " training is {} that before training",
    unit="ratio",
    needs={"depth": 2},
)
def raised_by_training(tables: Tables) -> pd.Series:
    """Return the smallest ratio over the depths, for each replicate.

    tables: the tables of a figure's runs; only `features` is used.
    """
    ranks = _ranks(tables)
    return (ranks[True] / ranks[False]).groupby("replicate").min()


@quantity(
    "at the two successive depths between which it falls least, the effective rank of the last"
    " hidden layer of the deeper untrained network is {} that of the shallower one",
    unit="ratio",
    needs={"depth": 2},
)
def kept_by_depth(tables: Tables) -> pd.Series:
    """Return the largest ratio of neighboring depths, for each replicate.

    tables: the tables of a figure's runs; only `features` is used.
    """
    ranks = _ranks(tables)[False].unstack("replicate").sort_index()
    return (ranks / ranks.shift()).max()


def _ranks(tables: Tables) -> pd.DataFrame:
    """Return the effective ranks by replicate and depth, with a column for (un)trained networks."""
    keys = ["replicate", "depth", "trained"]
    return tables["features"].set_index(keys)["effective_rank"].unstack("trained")
