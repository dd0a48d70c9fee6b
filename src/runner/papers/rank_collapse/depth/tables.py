"""Selections from the tables of study `rank_collapse`, for its drawings and claims."""

import pandas as pd

from runner.papers.rank_collapse.learning import at_chosen_rate
from runner.results.claims import Tables
from runner.results.statistics import last_epoch


def rank_of_last_layer(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows of the last hidden layer before training, one per depth, normalization,
    replicate."""
    return metrics[metrics["layer"] == metrics["depth"]]


def curves(tables: Tables) -> pd.DataFrame:
    """All epochs at the chosen rate of each depth and normalization."""
    return at_chosen_rate(tables["training"], ["depth", "normalization"])


def trained(tables: Tables) -> pd.DataFrame:
    """The last epoch at the chosen rate, one row per depth, normalization and replicate."""
    return last_epoch(curves(tables))
