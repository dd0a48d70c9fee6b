"""Selections from the tables of study `bn_only`, for its drawings and its claims."""

import numpy as np
import pandas as pd

from runner.results.rows import nonempty

SGD, TEACHER, DENSE, STUDENT = "sgd", "teacher construction", "dense", "student construction"
FIXED, ADAM, DENSE_ADAM = "sgd with fixed statistics", "adam", "dense by adam"
CORRECTED = "corrected construction"

CHOOSING = 5
"""Replicates of `norm-schedules` that choose the rates."""


def with_series(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, with a column `series`: what they are called where runs of several kinds
    meet."""
    adam, fixed = metrics["optimizer"] == "adam", metrics["statistics"] == "fixed"
    dense, method = metrics["method"] == DENSE, metrics["method"].str.replace("_", " ")
    series = np.select([adam & dense, adam, fixed], [DENSE_ADAM, ADAM, FIXED], default=method)
    return metrics.assign(series=series)


def left(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows at the width of Theorem 1, m = d^2. Raises NoRows without one."""
    return nonempty(metrics[metrics["width"] == metrics["target_width"] ** 2], "runs at m = d²")


def right(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the target width that has most widths m."""
    widths = metrics.groupby("target_width")["width"].nunique()
    return metrics[metrics["target_width"] == widths.idxmax()]


def by_budget(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return what is trained at m = d^2, with `samples`: how many were seen. Raises NoRows without
    any."""
    rows = left(metrics)
    rows = nonempty(rows[rows["learning_rate"].notna()], "training at m = d²")
    return rows.assign(samples=rows["train_samples"] * rows["epochs"])


def by_width(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return all widths of the d and budgets that have one above d^2, with `ratio`: m / d^2.

    Raises NoRows without any.
    """
    rows = metrics.assign(ratio=metrics["width"] / metrics["target_width"] ** 2)
    wide = nonempty(rows[rows["ratio"] > 1], "runs at m > d²")
    alike = ["target_width", "train_samples", "epochs"]
    return rows.merge(wide[alike].drop_duplicates())


def at_best_rates(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return all replicates but the last five, at the rates that are best on these five.

    Of each d and schedule it is the rate whose worst replicate has the least error: what is judged
    has no part in the choice. `inside_grid`: whether smaller and larger rates were offered; at an
    end of the grid another rate may be better. Raises NoRows when no replicate is left.
    """
    plan = ["target_width", "schedule"]
    chooses = metrics["replicate"] >= metrics["replicate"].nunique() - CHOOSING
    judged = nonempty(metrics[~chooses], f"replicates beside the {CHOOSING} that choose rates")
    errors = metrics[chooses].fillna({"test_mse": np.inf})
    worst = errors.groupby([*plan, "learning_rate"])["test_mse"].max()
    best = worst.loc[worst.groupby(plan).idxmin()].index.to_frame(index=False)
    rows, ends = judged.merge(best), metrics["learning_rate"].agg(["min", "max"])
    return rows.assign(inside_grid=~rows["learning_rate"].isin(ends))
