"""Selections and summaries of the table of study `rank_one`, for its drawing and claims."""

import numpy as np
import pandas as pd

TARGET_RANK = 2
"""k* of the function that study `rank_one` fits."""

NTK_EXPONENT = 4 - 4 / TARGET_RANK
"""Theorem 10: Theta >= c L e^{-c_1} N^{4 - 4/k*}."""

NORM_SLOPE = 2 * (1 - 1 / TARGET_RANK)
"""Section 3.1: c_1 >= 2 (1 - 1/k*) log N + const."""


def with_logarithms(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows with `log_ntk`, log(Tr Theta / L), and `log_ntk_plus_excess`, that plus c_1."""
    log_ntk = np.log(metrics["ntk_trace"] / metrics["depth"])
    return metrics.assign(log_ntk=log_ntk, log_ntk_plus_excess=log_ntk + metrics["excess"])


def interpolants(metrics: pd.DataFrame) -> pd.DataFrame:
    """The networks that fit their points.

    Their cost is below a tenth of what one point adds to the zero network's cost of about 1.
    """
    return metrics[metrics["train_cost"] * metrics["samples"] < 0.1]


def slopes(metrics: pd.DataFrame, column: str) -> pd.Series:
    """The slope of a column against log N for every replicate with three sizes N or more.

    A replicate of which one is not finite is left out.
    """
    found = {
        replicate: np.polyfit(np.log(group["samples"]), group[column], 1)[0]
        for replicate, group in metrics.groupby("replicate")
        if group["samples"].nunique() >= 3 and np.isfinite(group[column]).all()
    }
    return pd.Series(found, dtype=float)
