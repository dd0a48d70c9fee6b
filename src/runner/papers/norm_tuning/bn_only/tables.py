"""Selections from the tables of study `bn_only`, for its drawings and claims."""

import pandas as pd

from runner.results.rows import nonempty


def square_runs(metrics: pd.DataFrame) -> pd.DataFrame:
    """The runs at the width of Theorem 1, m = d^2: the left panels. Raises NoRows without one."""
    return nonempty(metrics[metrics["width"] == metrics["target_width"] ** 2], "runs at m = d²")


def width_runs(metrics: pd.DataFrame) -> pd.DataFrame:
    """The runs of the target width that was combined with most learner widths: the right panels."""
    counts = metrics.groupby("target_width")["width"].nunique()
    return metrics[metrics["target_width"] == counts.idxmax()]
