"""Select from the tables of study `breaking_bn`, for its drawings and claims."""

import pandas as pd

from runner.papers.batch_norm_rank.learning import end_of_grid, with_divergence
from runner.results.claims import Tables
from runner.results.labels import Labels

LABELS = Labels() | {
    "batch_norm": "batch norm",
    "batch_norm_no_mean": "batch norm without mean",
    "batch_norm_asymmetric": "batch norm from an asymmetric start",
    "vanilla": "vanilla",
    "vanilla_100x": "vanilla at 100 x the rate",
    "vanilla_random_pixels": "vanilla on random pixels",
}
"""What legends and claims call a method."""

MEASURES = ["rank", "rank_bound", "gradient_alignment"]
"""Known before training too."""


def paths(tables: Tables) -> pd.DataFrame:
    """Return one row per method, replicate and epoch, at the rate chosen for the method; what is
    known before training is epoch 0."""
    trained = with_divergence(tables["training"])
    start = tables["metrics"].rename(columns={"matrix_rank": "rank"})
    start = start[["method", "replicate", *MEASURES]].drop_duplicates(["method", "replicate"])
    rates = trained[["method", "learning_rate"]].drop_duplicates()
    start = start.merge(rates).assign(epoch=0, steps=0)
    return pd.concat([start, trained], ignore_index=True)


def chosen_rates(tables: Tables) -> pd.DataFrame:
    """Return the rate of each method, and `end_of_grid`: whether it is the smallest or largest
    offered.

    A method that takes another's rate, or 100 times that, has no grid of its own.
    """
    rates = tables["training"].groupby("method", sort=False)["learning_rate"].first().reset_index()
    tried = tables.get("selection", tables["training"]).groupby("method")["learning_rate"].unique()
    ends = [
        end_of_grid(rate, tried.get(method, ()))
        for method, rate in rates.itertuples(index=False, name=None)
    ]
    return rates.assign(end_of_grid=ends)
