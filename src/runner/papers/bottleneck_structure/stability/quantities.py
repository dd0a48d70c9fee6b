"""Quantities of the claims about gradient descent with the learning rate c/L.

A replicate has separate data and initial weights. In the tables, c = 0 is the network before
gradient descent. Networks that became zero or infinite have a curvature of nan.

Arguments that recur:

- tables: the tables of a figure's runs; only `metrics` is used.
- task: "figure-1" (networks trained on figure 1's task by Adam), "scratch" (the same task, trained
  from scratch by gradient descent) or "example-20" (Example 20's networks).
- column: a column of `metrics`, such as "ntk_trace".
- where: a condition on c, L and other columns, as for `DataFrame.query`.

Columns that recur: `fits` says whether a network after gradient descent fits the data (training
error below 0.1).
"""

import pandas as pd

from runner.papers.bottleneck_structure.fits import FITTED
from runner.results.evidence import slopes
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select

DEPTHS = {"depth": 3}
STEADY = "c > 0 and c <= 0.2 and train_cost < 0.1"
"""Condition: a network after gradient descent fits, at a rate at which most networks fit."""


def _read(tables: Tables, task: str, where: str = "") -> pd.DataFrame:
    """Return the networks of a task that meet a condition, with the columns `c`, `L` and `fits`."""
    rows = select(tables["metrics"], task=task)
    rows = rows.assign(c=rows["rate"], L=rows["depth"], fits=rows["train_cost"] < FITTED)
    return nonempty(rows.query(where), f"network where {where}") if where else rows


def _before(tables: Tables, task: str, column: str) -> pd.Series:
    """Return a column of the networks before gradient descent, by depth L and replicate."""
    return _read(tables, task, "c == 0").set_index(["L", "replicate"])[column]


@quantity(
    "learning rate c/L times the largest curvature, after gradient descent, of {task} (L: depth)",
    each=("c", "L"),
)
def rate_times_curvature(tables: Tables, task: str, where: str) -> pd.DataFrame:
    """Return the learning rate c/L times the largest curvature, after gradient descent.

    Above 2 gradient descent is unstable. There is a row for each rate c, depth and replicate. The
    column `before` has the same product before gradient descent. task: "figure-1", "scratch" or
    "example-20". where: a condition on c and L. Raises NoRows if no network meets the condition.
    """
    rows = _read(tables, task, f"c > 0 and {where}")
    first = _before(tables, task, "curvature").rename("first")
    rows, rate = rows.join(first, on=["L", "replicate"]), rows["c"] / rows["L"]
    return rows.assign(
        value=rate * rows["curvature"],
        before=rate * rows["first"],
    )


@quantity(
    "exponent p of the fit Lᵖ to {column} of {task} (L: depth)",
    each=("c",),
    unit="exponent",
    needs=DEPTHS,
)
def growth(tables: Tables, column: str, task: str, where: str = STEADY) -> pd.DataFrame:
    """Return the exponent p of a column that grows like Lᵖ, a row for each rate c and replicate.

    column: such as "ntk_trace". task: "figure-1" or "example-20". where: a condition on c, L and
    other columns. Raises NoRows if no network meets the condition.
    """
    measured = _read(tables, task, where).dropna(subset=column)
    by = nonempty(measured, f"network with a {column}").groupby("c")
    parts = {c: slopes(rows, "L", column, log=True) for c, rows in by}
    return pd.concat(parts, names=["c"]).rename("value").reset_index()


@quantity(
    "exponent p of the fit Lᵖ to {column} of {task} (L: depth)",
    each=("c",),
    unit="exponent",
    needs=DEPTHS,
)
def growth_from_scratch(tables: Tables, column: str, task: str = "scratch") -> pd.DataFrame:
    """Return the exponent p of a column that grows like Lᵖ, a row for each rate c and replicate.

    All depths of a replicate count; `fits` says whether its networks fit at all of them. column:
    such as "ntk_trace". Raises NoRows if no network was trained from scratch.
    """
    rows = _read(tables, task, "c > 0")
    parts = {c: slopes(at, "L", column, log=True) for c, at in rows.groupby("c")}
    values = pd.concat(parts, names=["c"]).rename("value").reset_index()
    return values.join(rows.groupby(["c", "replicate"])["fits"].all(), on=["c", "replicate"])


@quantity(
    "{column} of {task} after gradient descent is {} its value before",
    each=("c", "L"),
    unit="ratio",
)
def after_over_before(tables: Tables, column: str, task: str, where: str) -> pd.DataFrame:
    """Return a column after gradient descent, divided by its value before.

    There is a row for each rate c, depth L and replicate. column: such as "ntk_trace". task:
    "figure-1" or "example-20". where: a condition on c and L. Raises NoRows if no network meets the
    condition.
    """
    rows = _read(tables, task, f"c > 0 and {where}")
    rows = rows.join(_before(tables, task, column).rename("first"), on=["L", "replicate"])
    return rows.assign(value=rows[column] / rows["first"])


@quantity("training error of {task} after gradient descent", each=("c",))
def cost_after(tables: Tables, task: str, where: str) -> pd.DataFrame:
    """Return the training error after gradient descent, a row for each rate c, depth and replicate.

    task: "figure-1" or "example-20". where: a condition on L and other columns, as for
    `DataFrame.query`. Raises NoRows if no network meets the condition.
    """
    return _read(tables, task, where).query("c > 0").assign(value=lambda rows: rows["train_cost"])
