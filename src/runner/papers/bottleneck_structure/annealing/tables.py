"""Which networks of study `annealing` fit, and at how many depths, for its figure and claims."""

import pandas as pd

from runner.papers.bottleneck_structure.fits import FITTED
from runner.results.rows import select


def fitting(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks with a column `fits`: a training error below FITTED."""
    return metrics.assign(fits=metrics["train_cost"] < FITTED)


def depths_that_fit(metrics: pd.DataFrame, recipe: str) -> pd.Series:
    """Return at how many depths a network fits, by gain and replicate.

    recipe: "annealed" or "constant". Raises NoRows if it was not run.
    """
    rows = select(fitting(metrics), recipe=recipe)
    return rows.groupby(["gain", "replicate"])["fits"].sum()
