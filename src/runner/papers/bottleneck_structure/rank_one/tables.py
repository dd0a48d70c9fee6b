"""Select and summarize rows of the table of study `rank_one`, for its figure and claims."""

import pandas as pd

TARGET_RANK = 2
"""Rank k* of the function that study `rank_one` fits."""

NTK_EXPONENT = 4 - 4 / TARGET_RANK
"""Exponent of N in Theorem 10: Theta >= c L e^{-c_1} N^{4 - 4/k*}, with the tangent kernel
Theta.
"""

NORM_SLOPE = 2 * (1 - 1 / TARGET_RANK)
"""Slope of c_1 in log N in section 3.1: c_1 >= 2 (1 - 1/k*) log N + const."""


def interpolants(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks that fit their points.

    A network fits if the sum of the squared errors of all points is below 0.1. The zero network has
    about 1 per point.
    """
    return metrics[metrics["train_cost"] * metrics["samples"] < 0.1]


def counted(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return for each N the numbers of all networks (`starts`) and of networks that fit (`fit`)."""
    starts, fit = (rows.groupby("samples").size() for rows in (metrics, interpolants(metrics)))
    return pd.DataFrame({"starts": starts, "fit": fit.reindex(starts.index, fill_value=0)})
