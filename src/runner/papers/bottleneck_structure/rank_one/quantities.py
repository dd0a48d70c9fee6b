"""What is measured of rank-1 interpolants."""

import pandas as pd

from runner.papers.bottleneck_structure.rank_one.tables import interpolants, slopes, with_logarithms
from runner.results import evidence
from runner.results.quantities import Tables, quantity


@quantity(unit="slope")
def slope_of_fitting(tables: Tables) -> pd.Series:
    """slope of fitting (1 or 0) in N"""
    metrics = tables["metrics"]
    fits = metrics.index.isin(interpolants(metrics).index).astype(float)
    return evidence.slopes(metrics.assign(fits=fits), "samples", "fits")


@quantity(unit="slope")
def slope(tables: Tables, column: str) -> pd.DataFrame:
    """slope of {column} in log N, of interpolants"""
    metrics = tables["metrics"]
    found = interpolants(metrics)
    sizes = found.groupby("replicate")["samples"].nunique()
    value = slopes(with_logarithms(found), column)
    rows = pd.DataFrame({"value": value, "sizes": sizes}, index=metrics["replicate"].unique())
    return rows.rename_axis("replicate").reset_index()
