"""Which networks of study `fits_by_rank` fit, for its figure and its claim."""

import pandas as pd

FIT = 0.1
"""Summed squared error below which a network fits its points, as in study `rank_one`."""


def fitting(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks with a column `fits`."""
    return metrics.assign(fits=metrics["error"] < FIT)
