"""Quantities of the claim about networks of rank 1 and 2 that are trained to fit N points."""

import pandas as pd

from runner.papers.bottleneck_structure.fits_by_rank.tables import fitting
from runner.results.quantities import Tables, quantity


@quantity(
    "number of sample sizes at which a network of rank 2 fits minus the number at which a network"
    " of rank 1 fits",
    unit="difference",
    needs={"samples": 3, "rank": 2},
)
def more_fits(tables: Tables) -> pd.Series:
    """Return at how many more N the network of rank 2 fits, for each replicate.

    tables: the tables of a figure's runs; only `metrics` is used. A replicate has a network for
    each rank and N.
    """
    counts = fitting(tables["metrics"]).groupby(["replicate", "rank"])["fits"].sum().unstack()
    return counts[2] - counts[1]
