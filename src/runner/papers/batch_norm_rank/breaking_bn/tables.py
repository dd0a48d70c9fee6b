"""Select rows from the tables of study `breaking_bn`, for its figures and claims."""

import pandas as pd

from runner.papers.batch_norm_rank.learning import end_of_grid, with_divergence
from runner.results.rows import Tables

LABELS = {
    "batch_norm": "batch norm",
    "batch_norm_no_mean": "batch norm without mean",
    "batch_norm_asymmetric": "batch norm from an asymmetric start",
    "vanilla": "vanilla",
    "vanilla_100x": "vanilla at 100 x the rate",
    "vanilla_random_pixels": "vanilla on random pixels",
}
"""Names of methods in legends and claims."""

MEASURES = ["rank", "rank_bound", "gradient_alignment"]
"""Measures that are recorded before training and at every epoch."""


def paths(tables: Tables) -> pd.DataFrame:
    """Return the measures of all networks, a row for each method, replicate and epoch.

    All numbers of a network are from its chosen learning rate, which may depend on the seed. Rows
    with epoch 0 have the measures before training, without losses and accuracies. Diverged networks
    have accuracy zero and infinite loss.
    """
    trained = with_divergence(tables["training"])
    start = tables["metrics"].rename(columns={"matrix_rank": "rank"})
    start = start[["method", "replicate", *MEASURES]].drop_duplicates(["method", "replicate"])
    rates = trained[["method", "replicate", "learning_rate"]].drop_duplicates()
    start = start.merge(rates).assign(epoch=0, steps=0)
    return pd.concat([start, trained], ignore_index=True)


def chosen_rates(tables: Tables) -> pd.DataFrame:
    """Return the columns `method`, `learning_rate` and `end_of_grid`, a row for each method.

    A method has several rows if it has runs of several seeds that chose different learning rates.
    `end_of_grid` is `smallest` or `largest` if the learning rate is an end of its grid, otherwise
    empty. It is also empty for methods that use a multiple of another method's learning rate.
    """
    rates = tables["training"][["method", "learning_rate"]].drop_duplicates(ignore_index=True)
    tried = tables.get("selection", tables["training"]).groupby("method")["learning_rate"].unique()
    ends = [
        end_of_grid(rate, tried.get(method, ()))
        for method, rate in rates.itertuples(index=False, name=None)
    ]
    return rates.assign(end_of_grid=ends)
