"""Selections from the tables of study `symmetry`, for its drawings and claims."""

import numpy as np
import pandas as pd


def middle_layers(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows of the middle half of the layers, from L/4 to 3L/4."""
    L = metrics["layer"].max()
    return metrics[metrics["layer"].between(np.ceil(L / 4), np.floor(3 * L / 4))]
