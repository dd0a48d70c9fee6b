"""Quantities of the claims about the explicit networks of Example 20.

Nothing is random. Each network (depth and exponent) counts as a replicate. tables: the tables of a
figure's runs; only `metrics` is used.
"""

import numpy as np
import pandas as pd

from runner.results.quantities import Tables, quantity

EPSILON = np.finfo(np.float64).eps
SIZES = {"depth": 3, "exponent": 2}


@quantity(
    "largest difference between network and target on a grid in [0, 1]³, divided by machine epsilon"
    " × depth,",
    of="networks",
    needs=SIZES,
)
def error(tables: Tables) -> pd.DataFrame:
    """Return the largest |network − f| on a grid / (machine epsilon × L), for each network."""
    rows = tables["metrics"]
    return _cases(rows, rows["max_error"] / (EPSILON * rows["depth"]))


@quantity(
    "rounding error of ‖θ‖² − 3 L (θ: parameters, L: depth), divided by machine epsilon × ‖θ‖²"
    " × L,",
    of="networks",
    needs=SIZES,
)
def off_the_closed_form(tables: Tables) -> pd.DataFrame:
    """Return the rounding error of ‖θ‖² − 3 L against its closed form, a row for each network.

    The difference is divided by machine epsilon × ‖θ‖² × L.
    """
    rows = tables["metrics"]
    off = (rows["parameter_norm"] - 3 * rows["depth"] - rows["excess"]).abs()
    return _cases(rows, off / (EPSILON * rows["parameter_norm"] * rows["depth"]))


@quantity("change of {column} from one depth to the next", of="networks", needs=SIZES)
def step(tables: Tables, column: str) -> pd.DataFrame:
    """Return the change of a column from one depth to the next, for each exponent.

    There is a row for each network but the shallowest of an exponent. column: "excess" (‖θ‖² − 3 L)
    or "middle_lipschitz".
    """
    rows = tables["metrics"].sort_values("depth")
    return _cases(rows, rows.groupby("exponent")[column].diff()).dropna(subset="value")


def _cases(rows: pd.DataFrame, values: pd.Series) -> pd.DataFrame:
    return rows.assign(value=values, replicate=rows.index)
