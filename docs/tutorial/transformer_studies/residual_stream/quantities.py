"""What is measured of the residual stream, in each replicate."""

import pandas as pd

from runner.results.quantities import Tables, quantity
from runner.results.rows import select


def _last(tables: Tables, normalization: str) -> pd.Series:
    rows = select(tables["metrics"], normalization=normalization)
    return rows[rows["block"] == rows["block"].max()].set_index("replicate")["excess"]


@quantity()
def excess(tables: Tables, normalization: str) -> pd.Series:
    """r(H) - 1 behind the last block"""
    return _last(tables, normalization)


@quantity(unit="difference")
def gain(tables: Tables, normalization: str) -> pd.Series:
    """r(H) behind the last block less that without normalization"""
    return _last(tables, normalization) - _last(tables, "none")
