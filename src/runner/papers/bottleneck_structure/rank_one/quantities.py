"""Quantities of the claims about networks of rank 1 that are trained to fit N points.

tables: the tables of a figure's runs; only `metrics` is used. A replicate has one network for each
N.
"""

import numpy as np
import pandas as pd

from runner.papers.bottleneck_structure.rank_one.tables import interpolants
from runner.results.evidence import slopes
from runner.results.quantities import Tables, quantity


@quantity(
    "slope of a linear regression of “fits” (1: yes, 0: no) on the number of points",
    unit="slope",
    needs={"samples": 3},
)
def slope_of_fitting(tables: Tables) -> pd.Series:
    """Return the slope, against N, of a variable that is 1 if a network fits and 0 if not.

    There is a number for each replicate.
    """
    metrics = tables["metrics"]
    fits = metrics.index.isin(interpolants(metrics).index)
    return slopes(metrics.assign(fits=fits), "samples", "fits")


@quantity(
    "slope of {column} in log N, over the networks that fit N points,",
    unit="slope",
    needs={"samples": 3},
)
def slope(tables: Tables, column: str) -> pd.DataFrame:
    """Return the slope of a column against log N, over the networks that fit, for each replicate.

    The value is nan if the networks fit at fewer than two N. The column `sizes` is the number of N
    at which they fit. column: "excess" (‖θ‖² − L) or "log_ntk", the logarithm of the largest Tr Θ /
    L.
    """
    rows = interpolants(tables["metrics"])
    log_N, log_ntk = np.log(rows["samples"]), np.log(rows["ntk_trace"] / rows["depth"])
    rows = rows.assign(log_N=log_N, log_ntk=log_ntk)
    sizes = rows.groupby("replicate")["samples"].nunique()
    replicates = tables["metrics"]["replicate"].unique()
    columns = {"value": slopes(rows, "log_N", column), "sizes": sizes}
    values = pd.DataFrame(columns, index=replicates)
    return values.rename_axis("replicate").reset_index()
