"""What is measured of the residual stream, in each replicate."""

import pandas as pd

from runner.results.quantities import Tables, quantity
from runner.results.rows import select


def _last(tables: Tables, normalization: str) -> pd.Series:
    rows = select(tables["metrics"], normalization=normalization)
    return rows[rows["block"] == rows["block"].max()].set_index("replicate")["excess"]


@quantity("r(H) - 1 behind the last block")
def excess(tables: Tables, normalization: str) -> pd.Series:
    """Return r(H) - 1 behind the last block, for each replicate."""
    return _last(tables, normalization)


@quantity("r(H) behind the last block less that without normalization", unit="difference")
def gain(tables: Tables, normalization: str) -> pd.Series:
    """Return the difference to the networks without normalization, for each replicate."""
    return _last(tables, normalization) - _last(tables, "none")
