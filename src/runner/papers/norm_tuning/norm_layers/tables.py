"""Selections of the table of study `norm_layers`, for its drawings and claims."""

import pandas as pd

from runner.results.claims import Tables
from runner.results.rows import select


def training_mode(tables: Tables) -> pd.DataFrame:
    """The rows of BatchNorm with the statistics of each batch. Raises NoRows without one."""
    return select(tables["metrics"], layer="batch_norm", mode="training")
