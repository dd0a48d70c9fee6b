"""Means with confidence intervals, for the trained studies."""

import numpy as np
import pandas as pd
from scipy.stats import t

CONFIDENCE = 0.95
"""Of the intervals, as in the paper's figures."""


def half_width(values: pd.Series) -> float:
    """Half the width of the confidence interval of the mean (Student's t); nan for one value."""
    count = values.count()
    if count < 2:
        return np.nan
    return float(t.ppf((1 + CONFIDENCE) / 2, count - 1) * values.std() / np.sqrt(count))


def summarize(rows: pd.DataFrame, keys: list[str], columns: list[str]) -> pd.DataFrame:
    """Return one row per combination of `keys`, with four columns for each of `columns`.

    Its mean over replicates, `<column>_ci` (half the confidence interval of the mean),
    `<column>_low` and `<column>_high` (the interval within the range of the replicates, which is
    what a band shows: with few replicates the interval may reach beyond what the measure can be).
    """
    grouped = rows.groupby(keys, sort=False, dropna=False)
    parts = {}
    for column in columns:
        mean, ci = grouped[column].mean(), grouped[column].apply(half_width)
        parts[column], parts[f"{column}_ci"] = mean, ci
        parts[f"{column}_low"] = np.fmax(mean - ci, grouped[column].min())
        parts[f"{column}_high"] = np.fmin(mean + ci, grouped[column].max())
    return pd.DataFrame(parts).reset_index()


def last_epoch(training: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last epoch."""
    return training[training["epoch"] == training["epoch"].max()]
