"""Select rows from the tables of study `rank_collapse`, for its figures and claims."""

import pandas as pd

from runner.papers.batch_norm_rank.learning import with_divergence
from runner.results.rows import Tables, last_epoch


def rank_of_last_layer(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last hidden layer before training.

    There is one row for each depth, normalization and replicate. metrics: the table `metrics`.
    """
    return metrics[metrics["layer"] == metrics["depth"]]


def trained(tables: Tables) -> pd.DataFrame:
    """Return the last epoch, with one row for each depth, normalization and replicate.

    Diverged networks have accuracy zero and infinite loss.
    """
    return with_divergence(last_epoch(tables["training"]))
