"""Select rows from the tables of study `rank_collapse`, for its figures and claims."""

import pandas as pd

from runner.papers.batch_norm_rank.learning import with_divergence
from runner.results.rows import Tables, last_epoch, select


def rank_of_last_layer(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last hidden layer before training.

    There is one row for each depth, normalization and replicate. metrics: the table `metrics`.
    """
    return metrics[metrics["layer"] == metrics["depth"]]


def untrained(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of networks that are never trained, or all rows if all runs are alike.

    A figure of such networks and of trained ones compares layers of the first alone. metrics: the
    table `metrics`.
    """
    return select(metrics, train=False) if metrics["train"].nunique() > 1 else metrics


def trained(tables: Tables) -> pd.DataFrame:
    """Return the last epoch, with one row for each depth, normalization and replicate.

    Diverged networks have accuracy zero and infinite loss.
    """
    return with_divergence(last_epoch(tables["training"]))
