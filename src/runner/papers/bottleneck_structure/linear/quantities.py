"""Quantities of the claims about trained deep linear networks.

A is the product of a network's matrices. tables: the tables of a figure's runs; only `metrics` is
used. A replicate is one task, with separate target and initial weights.
"""

import pandas as pd

from runner.papers.bottleneck_structure.linear.tables import of_one_rank, with_remainders
from runner.results.evidence import slopes
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty


@quantity("relative distance of ‖θ‖² from L ‖A‖^(2/L) (absolute where L ‖A‖^(2/L) < 1)")
def excess(tables: Tables) -> pd.DataFrame:
    """Return |‖θ‖² − R(A; L)|, divided by the larger of R(A; L) and 1, a row for each network.

    R(A; L) = L ‖A‖^(2/L) is the representation cost, with the Schatten norm of order 2/L. The
    column `zero` says whether the network is zero.
    """
    rows = with_remainders(tables["metrics"])
    return rows.assign(value=rows["off_formula"], zero=rows["rank"] == 0)


@quantity(
    "exponent p of the fit Lᵖ to {column}, over {depths} or more depths L of equal rank,",
    unit="exponent",
    needs={"depth": 3},
)
def exponent_of_remainder(tables: Tables, column: str, depths: int) -> pd.Series:
    """Return the exponent p of a remainder of the expansion of ‖θ‖², which falls like Lᵖ.

    There is a number for each replicate, fitted over the depths with its most frequent rank. The
    number is nan if these depths are fewer than `depths`. column: "after_first" or "after_second",
    the remainder after two or three terms. Raises NoRows if no replicate has enough depths.
    """
    rows = of_one_rank(with_remainders(tables["metrics"]), depths)
    exponents = slopes(nonempty(rows, f"rank of {depths} depths"), "depth", column, log=True)
    return exponents.reindex(pd.Index(tables["metrics"]["replicate"].unique(), name="replicate"))
