"""Measure trained deep linear networks."""

import pandas as pd

from runner.papers.bottleneck_structure.linear.tables import of_one_rank, with_remainders
from runner.results.evidence import slopes
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty

PRINTED = {
    "after_first": "|‖θ‖² − L Rank A − 2 log |A|₊|",
    "after_second": "|‖θ‖² − L Rank A − 2 log |A|₊ − ‖log₊ AᵀA‖² / (2 L)|",
}
"""Printed names of columns."""


@quantity("|‖θ‖² − R(A; L)|, divided by the larger of R(A; L) and 1")
def excess(tables: Tables) -> pd.DataFrame:
    """TODO"""
    rows = with_remainders(tables["metrics"])
    return rows.assign(value=rows["excess"], zero=rows["rank"] == 0)


@quantity(
    "exponent p of {column} ∝ Lᵖ, over {depths} or more depths of equal rank",
    unit="exponent",
    needs={"depth": 3},
)
def exponent_of_remainder(tables: Tables, column: str, depths: int) -> pd.Series:
    """TODO"""
    rows = of_one_rank(with_remainders(tables["metrics"]), depths)
    exponents = slopes(nonempty(rows, f"rank of {depths} depths"), "depth", column, log=True)
    return exponents.reindex(pd.Index(tables["metrics"]["replicate"].unique(), name="replicate"))
