"""What is measured of rank-1 interpolants."""

import numpy as np
import pandas as pd

from runner.papers.bottleneck_structure.rank_one.tables import interpolants
from runner.results.evidence import slopes
from runner.results.quantities import Tables, quantity


@quantity(unit="slope")
def slope_of_fitting(tables: Tables) -> pd.Series:
    """slope of fitting (1 or 0) in N"""
    metrics = tables["metrics"]
    fits = metrics.index.isin(interpolants(metrics).index)
    return slopes(metrics.assign(fits=fits), "samples", "fits")


@quantity(unit="slope")
def slope(tables: Tables, column: str) -> pd.DataFrame:
    """slope of {column} in log N, of interpolants"""
    found = interpolants(tables["metrics"])
    log_ntk = np.log(found["ntk_trace"] / found["depth"])
    found = found.assign(
        log_samples=np.log(found["samples"]),
        log_ntk=log_ntk,
        log_ntk_plus_excess=log_ntk + found["excess"],
    )
    sizes = found.groupby("replicate")["samples"].nunique()
    value = slopes(found, "log_samples", column)
    rows = pd.DataFrame({"value": value, "sizes": sizes}, tables["metrics"]["replicate"].unique())
    return rows.rename_axis("replicate").reset_index()
