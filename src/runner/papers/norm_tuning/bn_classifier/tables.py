"""Selections of the table of study `bn_classifier`, for its drawings and claims."""

import pandas as pd

from runner.results.claims import Tables
from runner.results.rows import select


def of_network(tables: Tables, network: str, column: str) -> pd.Series:
    """A column of one kind of network, by replicate. Raises NoRows without one."""
    return select(tables["metrics"], network=network).set_index("replicate")[column]
