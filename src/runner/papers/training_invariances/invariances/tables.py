"""Select and summarize the tables of study `invariances`, for its figures and claims.

The table `metrics` has the drift of quantities that gradient flow may conserve: the norm of their
change since the start. A series is one quantity of one replicate, identified by the columns SERIES.
The table `lowrank` has norms and singular values of layers W.
"""

import numpy as np
import pandas as pd

from runner.papers.training_invariances.orders import local_orders
from runner.results.rows import Tables

SERIES = ["run", "data", "architecture", "layer", "place", "pair", "replicate"]
"""Columns that identify a quantity of a replicate."""


def final(metrics: pd.DataFrame, integrator: str = "euler") -> pd.DataFrame:
    """Return the rows of the table `metrics` at the end of training, with the largest drift so far.

    The largest drift replaces the last one in the column `drift`, because the drift of few entries
    may pass through zero near the end. integrator: "euler" or "rk4"; runs with another integrator
    or with normalized time are excluded.
    """
    rows = metrics[(metrics["integrator"] == integrator) & ~metrics["normalized_time"].astype(bool)]
    largest = rows.groupby([*SERIES, "learning_rate"], dropna=False)["drift"].transform("max")
    rows = rows.assign(drift=largest.where(np.isfinite(rows["drift"]), rows["drift"]))
    return rows[rows["time"] == rows.groupby("run")["time"].transform("max")]


def orders(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the convergence order of the drift of each quantity in each replicate.

    The order is the exponent of the drift in the learning rate h. At finite h it is p + O(h). The
    limit p is extrapolated (Richardson) from two orders: one between the smallest two learning
    rates, and one between the next two.

    The columns are SERIES, `order`, and `error`, the distance of the extrapolation. The order is
    inf if the drift is zero, and nan if it is not asymptotic (see `local_orders`). Quantities at
    fewer than three learning rates are excluded. rows: rows of `final`.
    """
    local = local_orders(rows[rows["entries"] > 0], SERIES)
    shift = (local["fine"] - local["coarse"]) * local["reach"]
    order = (local["fine"] + shift).where(local["asymptotic"])
    return local[SERIES].assign(
        order=order.where(local["moves"], np.inf), error=shift.abs().where(local["moves"], 0)
    )


def unrolled(tables: Tables) -> pd.Series:
    """Return the names of the runs whose networks are small enough to list all paths (Lemma 1)."""
    return tables["decomposition"]["run"] if "decomposition" in tables else pd.Series(dtype=object)


def tail(tables: Tables) -> pd.DataFrame:
    """Return the layers to which Theorem 2 applies, along the training in normalized time.

    Only the smallest step length of each run is included. Networks with balanced initialization, of
    rank one, are excluded. There are two new columns:

    - `start`: ||W||_2^2 / ||W||_F^2 before training.
    - `separates`: whether the risk of the network ever falls below loss(0) / n. Then every example
      is classified correctly, as Corollary 1 assumes (and Ji and Telgarsky 2020). Otherwise the
      norms need not diverge, because ReLU units can die for a whole class.
    """
    rows = tables["lowrank"]
    rows = rows[rows["normalized_time"].astype(bool) & rows["bound"].notna()]
    rows = rows[~rows["balanced"].astype(bool)]
    rows = rows[rows["learning_rate"] == rows.groupby("run")["learning_rate"].transform("min")]
    separates = rows.groupby(["run", "replicate"])["separates"].transform("any")
    first = rows["operator_ratio"].where(rows["time"] == 0)
    start = first.groupby([rows["run"], rows["replicate"], rows["layer"]]).transform("max")
    return rows.assign(separates=separates, start=start)


def every_layer(tables: Tables) -> pd.DataFrame:
    """Return all layers along the training in normalized time, with the new columns of `tail`.

    Unlike `tail`, the result also has the layers to which Theorem 2 does not apply. Their column
    `bound` is 0.
    """
    rows = tables["lowrank"]
    return tail({"lowrank": rows.assign(bound=rows["bound"].fillna(0.0))})


def longest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the runs with the longest training, in normalized time."""
    return rows[rows.groupby("run")["time"].transform("max") == rows["time"].max()]


def late(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the second half of each run's training, where log t is above 1."""
    half = rows["time"] >= 0.5 * rows.groupby("run")["time"].transform("max")
    return rows[half & (rows["log_flow_time"] > 1)]


def telling(tables: Tables) -> pd.DataFrame:
    """Return the layers for which the lower bound of Eq. (14) says something about training.

    The bound on ||W||_2^2 / ||W||_F^2 is below one, above the trivial bound 1 / (number of singular
    values), and above the ratio before training. An untrained network therefore does not satisfy
    it.
    """
    return tail(tables).query("bound < 1 and bound > trivial_bound and bound > start")


def ends(rows: pd.DataFrame, share: float = 1.0) -> pd.DataFrame:
    """Return the rows of each run's last measurement before a given time.

    share: this time, as a fraction of the run's final time.
    """
    earlier = rows[rows["time"] <= share * rows.groupby("run")["time"].transform("max")]
    return earlier[earlier["time"] == earlier.groupby("run")["time"].transform("max")]


LAYER = ["run", "layer", "replicate", "separates"]
"""Columns that identify a layer of a network."""


def power(rows: pd.DataFrame, column: str) -> pd.Series:
    """Return for each layer the slope of the logarithm of a column against log ||W||_F^2.

    The result is indexed by run, layer, replicate and `separates`. The slope is fitted over all
    measured times. It is nan if ||W||_F^2 does not change. Values that rounding makes zero or
    negative have no logarithm and are excluded. rows: rows of `tail`. column: a column of positive
    numbers.
    """
    layers = rows.groupby(LAYER).size().index
    rows = rows[~(rows[column] <= 0)]
    logs = rows[LAYER].assign(x=np.log(rows["frobenius"]), y=np.log(rows[column]))
    by = logs.groupby(LAYER)["x"]
    centred = logs["x"] - by.transform("mean")
    terms = logs[LAYER].assign(xx=centred**2, xy=centred * logs["y"])
    xx, xy = (terms.groupby(LAYER)[name].sum() for name in ("xx", "xy"))
    known = ~terms["xy"].isna().groupby([terms[key] for key in LAYER]).any()
    return (xy / xx.where(known & (by.max() > by.min()))).reindex(layers)
