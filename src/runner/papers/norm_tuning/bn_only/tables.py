"""Select rows from the tables of study `bn_only`, for its figures and claims.

The functions read the table `metrics`: one row for each method, target width d (`target_width`),
width m of the frozen network (`width`), fraction p of nonzero weights and replicate.
"""

import numpy as np
import pandas as pd

from runner.results.rows import nonempty

SGD, TEACHER, DENSE, STUDENT = "sgd", "teacher construction", "dense", "student construction"
FIXED, ADAM, DENSE_ADAM = "sgd with fixed statistics", "adam", "dense by adam"


def with_series(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a new column `series`: the method together with how it is trained.

    The name depends on the method, the optimizer, and the statistics of the normalization layers.
    Examples are "sgd", "dense by adam" and "sgd with fixed statistics". metrics: the table
    `metrics`.
    """
    optimizer, fixed = metrics["optimizer"], metrics["statistics"] == "fixed"
    adam, own = optimizer == "adam", ~optimizer.isin(["adam", "sgd", "none"])
    dense, method = metrics["method"] == DENSE, metrics["method"].str.replace("_", " ")
    series = np.select(
        [adam & dense, adam, own & dense, own, fixed],
        [DENSE_ADAM, ADAM, "dense by " + optimizer, optimizer + " on γ and β", FIXED],
        default=method,
    )
    return metrics.assign(series=series)


def left(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows at m = d^2, the width of Theorem 1, for the left panels of figures 4 and 5.

    Raises NoRows if there are none.
    """
    return nonempty(metrics[metrics["width"] == metrics["target_width"] ** 2], "runs at m = d²")


def right(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one target width d, for the right panels of figures 4 and 5.

    This d is the one with the most widths m in the table.
    """
    widths = metrics.groupby("target_width")["width"].nunique()
    return metrics[metrics["target_width"] == widths.idxmax()]


def by_budget(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of trained networks at m = d^2, with a new column `samples`.

    The column has the number of samples seen in training, counted again in each epoch. Raises
    NoRows if there are no rows.
    """
    rows = left(metrics)
    rows = nonempty(rows[rows["learning_rate"].notna()], "training at m = d²")
    return rows.assign(samples=rows["train_samples"] * rows["epochs"])


def by_width(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of experiments with a network wider than d^2, with a new column `ratio`.

    An experiment has one target width d, number of training samples and number of epochs. Its
    networks have several widths m. The column `ratio` is m / d^2. Raises NoRows if no network is
    wider than d^2.
    """
    rows = metrics.assign(ratio=metrics["width"] / metrics["target_width"] ** 2)
    wide = nonempty(rows[rows["ratio"] > 1], "runs at m > d²")
    alike = ["target_width", "train_samples", "epochs"]
    return rows.merge(wide[alike].drop_duplicates())


def at_best_rates(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return for each network, target width and schedule the row at the rate that others choose.

    This rate has the smallest median error over all replicates but the network's own. The new
    column `inside_grid` is false if it is the smallest or largest rate that was tried, since a rate
    outside may be better. metrics: the table `metrics`. Raises NoRows if there is one replicate.
    """
    plan, rows = ["target_width", "schedule"], metrics.fillna({"test_mse": np.inf})
    grid = rows.set_index([*plan, "learning_rate", "replicate"])["test_mse"].unstack()
    chosen = []
    nonempty(grid.columns[1:].to_series(), "other replicates that choose rates")
    for replicate in grid:
        medians = grid.drop(columns=replicate).median(axis=1)
        best = medians.loc[medians.groupby(plan).idxmin()].index.to_frame(index=False)
        chosen.append(best.assign(replicate=replicate))
    ends = metrics["learning_rate"].agg(["min", "max"])
    rows = metrics.merge(pd.concat(chosen))
    return rows.assign(inside_grid=~rows["learning_rate"].isin(ends))
