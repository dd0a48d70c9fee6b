"""Selections from the tables of study `breaking_bn`, for its drawings and claims."""

import pandas as pd

from runner.results.claims import Tables
from runner.results.statistics import best_rates

LABELS = {
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
    """One row per method, rate, replicate and epoch; what is known before training is epoch 0.

    The column `fastest` marks the rows of the fastest rate of each method.
    """
    training = tables["training"]
    before = tables["metrics"].rename(columns={"matrix_rank": "rank"})
    before = before[["method", "replicate", *MEASURES]].drop_duplicates(["method", "replicate"])
    rates = training[["method", "learning_rate"]].drop_duplicates()
    rows = pd.concat([before.merge(rates).assign(epoch=0, steps=0), training], ignore_index=True)
    fastest = best_rates(training, ["method"])[["method", "learning_rate"]].drop_duplicates()
    rows = rows.merge(fastest, how="left", indicator="fastest")
    return rows.assign(fastest=rows["fastest"] == "both")


def of(tables: Tables, method: str, column: str) -> pd.DataFrame:
    """A column of one method at its fastest rate: a row for each epoch (0: before training), by
    replicate."""
    rows = paths(tables)
    rows = rows[(rows["method"] == method) & rows["fastest"]]
    return rows.pivot(index="epoch", columns="replicate", values=column)


def before(tables: Tables, method: str, column: str) -> pd.Series:
    """A measure of one method before training, by replicate."""
    return of(tables, method, column).loc[0]
