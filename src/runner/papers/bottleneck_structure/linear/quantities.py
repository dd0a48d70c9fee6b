"""Measure trained deep linear networks."""

import pandas as pd

from runner.papers.bottleneck_structure.linear.tables import of_one_rank, with_remainders
from runner.results.evidence import slopes
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty


@quantity()
def excess(tables: Tables) -> pd.DataFrame:
    """|‖θ‖² − R(A; L)|, relative to R(A; L) or 1"""
    rows = with_remainders(tables["metrics"])
    return rows.assign(value=rows["excess"], zero=rows["rank"] == 0)


@quantity(unit="exponent", needs={"depth": 3})
def exponent_of_remainder(tables: Tables, column: str, depths: int) -> pd.Series:
    """exponent in L of the residual {column}, over {depths} or more depths of one rank"""
    rows = of_one_rank(with_remainders(tables["metrics"]), depths)
    found = slopes(nonempty(rows, f"rank of {depths} depths"), "depth", column, log=True)
    return found.reindex(pd.Index(tables["metrics"]["replicate"].unique(), name="replicate"))
