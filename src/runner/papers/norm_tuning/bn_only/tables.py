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
    """Return the rows with a column `series`, the printed name of method and training procedure.

    Optimizer, statistics, initialization and trained parameters make up the procedure.
    """
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
    """Return the rows at m = d^2, the width of Theorem 1, for the left panels.

    Raises NoRows if there are none.
    """
    return nonempty(metrics[metrics["width"] == metrics["target_width"] ** 2], "runs at m = d²")


def right(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the target width d that has the most widths m, for the right panels."""
    widths = metrics.groupby("target_width")["width"].nunique()
    return metrics[metrics["target_width"] == widths.idxmax()]


def by_budget(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of trained networks at m = d^2, with a column `samples`.

    The column has the number of samples seen in training, over all epochs. Raises NoRows if there
    are none.
    """
    rows = left(metrics)
    rows = nonempty(rows[rows["learning_rate"].notna()], "training at m = d²")
    return rows.assign(samples=rows["train_samples"] * rows["epochs"])


def by_width(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of networks of several widths, with a column `ratio`, m / d^2.

    Rows of a target width d and number of samples are included if one network is wider than d^2.
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
    """Return the rows of all replicates except the last five, which choose learning rates.

    Raises NoRows if there are none.
    """
    what = f"replicates beside the {CHOOSING} that choose rates"
    return nonempty(metrics[~_chooses(metrics)], what)


def at_best_rates(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the judged replicates, at the best learning rate of each d and schedule.

    The last five replicates choose this rate: it has the smallest median of their errors. All other
    replicates are judged. The column `inside_grid` is false if the rate is the smallest or largest
    of the grid, since a rate outside may be better. Raises NoRows if no replicate remains.
    """
    plan = ["target_width", "schedule"]
    errors = metrics[_chooses(metrics)].fillna({"test_mse": np.inf})
    medians = errors.groupby([*plan, "learning_rate"])["test_mse"].median()
    best = medians.loc[medians.groupby(plan).idxmin()].index.to_frame(index=False)
    rows, ends = judged(metrics).merge(best), metrics["learning_rate"].agg(["min", "max"])
    return rows.assign(inside_grid=~rows["learning_rate"].isin(ends))
