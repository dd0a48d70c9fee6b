"""Which networks of study `fits_by_rank` fit, for its figure and its claim."""

import pandas as pd

from runner.papers.bottleneck_structure.fits import FITTED


def fitting(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks with a column `fits`: a summed squared error below FITTED."""
    return metrics.assign(fits=metrics["error"] < FITTED)
