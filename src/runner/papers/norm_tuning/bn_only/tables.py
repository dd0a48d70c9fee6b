"""Select rows from the tables of study `bn_only`, for its figures and claims."""

import numpy as np
import pandas as pd

from runner.results.rows import nonempty

SGD, TEACHER, DENSE, STUDENT = "sgd", "teacher construction", "dense", "student construction"
FIXED, ADAM, DENSE_ADAM = "sgd with fixed statistics", "adam", "dense by adam"
CORRECTED = "corrected construction"
KEPT_ON, COORDINATES, SHIFTED, FROM_ACTIVE = (
    "{}, ReLUs kept on",
    "{} in coordinates of K",
    "{} from a shift",
    "{} from active ReLUs",
)
"""Series of the trained frozen network by `trained` and `start`, for an optimizer."""

EXACT = 1e-6
"""Error / variance below which a trained network is an exact solution."""

LARGEST = 10
"""Largest target width that the claims of `norm-start` judge."""

CHOOSING = 5
"""Number of replicates of `norm-schedules` that choose the learning rates."""


def with_series(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a column `series`: one name for method and way of training."""
    adam, fixed = metrics["optimizer"] == "adam", metrics["statistics"] == "fixed"
    dense, method = metrics["method"] == DENSE, metrics["method"].str.replace("_", " ")
    usual = pd.Series("none", metrics.index)  # tables of version 1 lack both columns
    start, trained = (metrics.get(name, usual) for name in ("start", "trained"))
    other = {
        COORDINATES: trained == "coordinates",
        KEPT_ON: trained == "scales",
        FROM_ACTIVE: start == "active",
        SHIFTED: start == "shifted",
    }
    names = [[name.format(optimizer) for optimizer in metrics["optimizer"]] for name in other]
    series = np.select(
        [*other.values(), adam & dense, adam, fixed],
        [*names, DENSE_ADAM, ADAM, FIXED],
        default=method,
    )
    return metrics.assign(series=series)


def left(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows at the width of Theorem 1, m = d^2. Raises NoRows if there are none."""
    return nonempty(metrics[metrics["width"] == metrics["target_width"] ** 2], "runs at m = d²")


def right(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the target width d that has the most widths m."""
    widths = metrics.groupby("target_width")["width"].nunique()
    return metrics[metrics["target_width"] == widths.idxmax()]


def by_budget(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the trained networks at m = d^2 with the column `samples`, the training samples seen.

    Raises NoRows if there are none.
    """
    rows = left(metrics)
    rows = nonempty(rows[rows["learning_rate"].notna()], "training at m = d²")
    return rows.assign(samples=rows["train_samples"] * rows["epochs"])


def by_width(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return all widths, with `ratio` m / d^2, of each d and budget with a width above d^2.

    Raises NoRows if there are none.
    """
    rows = metrics.assign(ratio=metrics["width"] / metrics["target_width"] ** 2)
    wide = nonempty(rows[rows["ratio"] > 1], "runs at m > d²")
    alike = ["target_width", "train_samples", "epochs"]
    return rows.merge(wide[alike].drop_duplicates())


def _chooses(metrics: pd.DataFrame) -> pd.Series:
    """Return which rows are of the last five replicates, which choose learning rates."""
    return metrics["replicate"] >= metrics["replicate"].nunique() - CHOOSING


def judged(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return all replicates but the last five. Raises NoRows if there are none."""
    what = f"replicates beside the {CHOOSING} that choose rates"
    return nonempty(metrics[~_chooses(metrics)], what)


def at_best_rates(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the judged replicates at the learning rates that are best on the last five.

    The judged replicates are all but the last five. The best learning rate of a d and schedule has
    the smallest median error of the five. `inside_grid`: whether the grid has smaller and
    larger learning rates; beyond an end of the grid another rate may be better. Raises NoRows if no
    replicate remains.
    """
    plan = ["target_width", "schedule"]
    errors = metrics[_chooses(metrics)].fillna({"test_mse": np.inf})
    medians = errors.groupby([*plan, "learning_rate"])["test_mse"].median()
    best = medians.loc[medians.groupby(plan).idxmin()].index.to_frame(index=False)
    rows, ends = judged(metrics).merge(best), metrics["learning_rate"].agg(["min", "max"])
    return rows.assign(inside_grid=~rows["learning_rate"].isin(ends))
