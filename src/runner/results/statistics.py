"""Selections that several studies share."""

import pandas as pd


def last_epoch(training: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last epoch."""
    return training[training["epoch"] == training["epoch"].max()]
