"""Selections from the tables of study `rank_collapse`, for its drawings and claims."""

import pandas as pd

from runner.results.statistics import best_rates, last_epoch


def rank_of_last_layer(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows of the last hidden layer before training, one per depth, normalization,
    replicate."""
    return metrics[metrics["layer"] == metrics["depth"]]


def trained(training: pd.DataFrame) -> pd.DataFrame:
    """The last epoch at the best rate, one row per depth, normalization and replicate."""
    return last_epoch(best_rates(training, ["depth", "normalization"]))
