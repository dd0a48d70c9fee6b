"""Quantities of the claims about gradient descent with the learning rate c/L.

A replicate has separate data and initial weights. In the tables, c = 0 is the network before
gradient descent. Networks that became zero or infinite have a curvature of nan.

Arguments that recur:

- tables: the tables of a figure's runs; only `metrics` is used.
- task: "figure-1" (networks trained on figure 1's task) or "example-20" (Example 20's networks).
- column: a column of `metrics`, such as "ntk_trace".
- where: a condition on c, L and other columns, as for `DataFrame.query`.
"""

import numpy as np
import pandas as pd

from runner.results.evidence import slopes
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select

DEPTHS = {"depth": 3}
FITS = "c > 0 and train_cost < 0.1"
"""Condition: a network after gradient descent fits the data (training error below 0.1)."""


def _read(tables: Tables, task: str, where: str = "") -> pd.DataFrame:
    """Return the networks of a task that meet a condition, with the columns `c` and `L`."""
    rows = select(tables["metrics"], task=task)
    rows = rows.assign(c=rows["rate"], L=rows["depth"])
    return nonempty(rows.query(where), f"network where {where}") if where else rows


@quantity(
    "learning rate × largest curvature 2 ‖Θ(X, X)‖ / N of {task}, after gradient descent",
    each=("c",),
)
def rate_times_curvature(tables: Tables, task: str) -> pd.DataFrame:
    """Return the learning rate c/L times the curvature 2 ‖Θ(X, X)‖ / N, after gradient descent.

    Above 2 gradient descent is unstable. There is a row for each rate c > 0, depth and replicate;
    networks that are zero or infinite are excluded. task: "figure-1" or "example-20". Raises NoRows
    if no network remains.
    """
    rows = _read(tables, task).query("c > 0")
    value = rows["c"] / rows["L"] * rows["curvature"]
    return nonempty(rows.assign(value=value)[np.isfinite(value)], "network that is not zero")


@quantity("exponent p of {column} ∝ Lᵖ, of {task}", each=("c",), unit="exponent", needs=DEPTHS)
def growth(tables: Tables, column: str, task: str, where: str = FITS) -> pd.DataFrame:
    """Return the exponent p of a column that grows like Lᵖ, a row for each rate c and replicate.

    column: such as "ntk_trace". task: "figure-1" or "example-20". where: a condition on c, L and
    other columns, as for `DataFrame.query`. Raises NoRows if no network meets the condition.
    """
    measured = _read(tables, task, where).dropna(subset=column)
    by = nonempty(measured, f"network with a {column}").groupby("c")
    parts = {c: slopes(rows, "L", column, log=True) for c, rows in by}
    return pd.concat(parts, names=["c"]).rename("value").reset_index()


@quantity(
    "{column} of {task} after gradient descent at the largest c / before", each=("L",), unit="ratio"
)
def after_over_before(tables: Tables, column: str, task: str) -> pd.DataFrame:
    """Return a column after gradient descent at the largest c, divided by its value before.

    There is a row for each depth L and replicate. column: such as "ntk_trace". task: "figure-1" or
    "example-20". Raises NoRows if the task was not run.
    """
    key, rows = ["L", "replicate"], _read(tables, task)
    after = rows[rows["c"] == rows["c"].max()].set_index(key)[column]
    return (after / rows[rows["c"] == 0].set_index(key)[column]).rename("value").reset_index()


@quantity("training error of {task} after gradient descent", each=("c",))
def cost_after(tables: Tables, task: str, where: str) -> pd.DataFrame:
    """Return the training error after gradient descent, a row for each rate c, depth and replicate.

    task: "figure-1" or "example-20". where: a condition on L and other columns, as for
    `DataFrame.query`. Raises NoRows if no network meets the condition.
    """
    return _read(tables, task, where).query("c > 0").assign(value=lambda rows: rows["train_cost"])
