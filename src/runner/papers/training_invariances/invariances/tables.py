"""Select and summarize the tables of study `invariances`, for its figures and claims."""

import numpy as np
import pandas as pd

from runner.results.rows import Tables

SERIES = ["run", "data", "architecture", "layer", "place", "pair", "replicate"]
"""Columns that identify a quantity of a replicate."""


def final(metrics: pd.DataFrame, integrator: str = "euler") -> pd.DataFrame:
    """Return the final rows of the runs with an integrator in unnormalized time.

    The column `drift` becomes the largest drift so far, since the drift of few entries may pass
    through zero near the end.
    """
    rows = metrics[(metrics["integrator"] == integrator) & ~metrics["normalized_time"].astype(bool)]
    largest = rows.groupby([*SERIES, "learning_rate"], dropna=False)["drift"].transform("max")
    rows = rows.assign(drift=largest.where(np.isfinite(rows["drift"]), rows["drift"]))
    return rows[rows["time"] == rows.groupby("run")["time"].transform("max")]


def orders(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the convergence order of the drift of each series, extrapolated to learning rate zero.

    A series is one quantity of one replicate. The order is the exponent of the drift in the
    learning rate h. At finite h it is p + O(h). The limit p is extrapolated (Richardson) from two
    orders: between the smallest two learning rates, and between the next two.

    The columns are SERIES, `order` and `error`, the distance of the extrapolation. The order is inf
    if the drift is zero. Series of fewer than three learning rates are excluded.
    """
    rows = rows[rows["entries"] > 0].sort_values("learning_rate")
    rows = rows.assign(rate=rows.groupby(SERIES).cumcount()).query("rate < 3")
    wide = rows.pivot(index=SERIES, columns="rate", values=["learning_rate", "drift"]).dropna()
    if wide.shape[1] < 6:
        return pd.DataFrame(columns=[*SERIES, "order", "error"])
    h, drift = (wide[name].to_numpy(float).T for name in ("learning_rate", "drift"))
    with np.errstate(all="ignore"):
        fine, coarse = np.diff(np.log(drift), axis=0) / np.diff(np.log(h), axis=0)
    shift = (fine - coarse) * h[0] / (h[1] - h[0])
    moves = (drift > 0).all(axis=0)
    order, error = np.where(moves, fine + shift, np.inf), np.where(moves, np.abs(shift), 0)
    return wide.index.to_frame(index=False).assign(order=order, error=error)


def unrolled(tables: Tables) -> pd.Series:
    """Return the names of the runs with networks small enough to list their paths (Lemma 1)."""
    return tables["decomposition"]["run"] if "decomposition" in tables else pd.Series(dtype=object)


def tail(tables: Tables) -> pd.DataFrame:
    """Return the layers of Theorem 2 along the path of the flow, at each run's smallest step.

    Networks with balanced initialization, of rank one, are excluded. The column `start` is
    ||W||_2^2 / ||W||_F^2 before training. `separates` is whether the risk of the network ever falls
    below loss(0) / n. Every example is then classified correctly. Corollary 1 assumes this (as Ji
    and Telgarsky 2020 do). Otherwise the norms need not diverge: the ReLU units can die for a whole
    class.
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
    """Return the rows of `tail` for all layers; `bound` is 0 for layers without a bound."""
    rows = tables["lowrank"]
    return tail({"lowrank": rows.assign(bound=rows["bound"].fillna(0.0))})


def longest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the runs with the longest path."""
    return rows[rows.groupby("run")["time"].transform("max") == rows["time"].max()]


def late(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the second half of each run's path, where log t is above 1."""
    half = rows["time"] >= 0.5 * rows.groupby("run")["time"].transform("max")
    return rows[half & (rows["log_flow_time"] > 1)]


def telling(tables: Tables) -> pd.DataFrame:
    """Return the layers with an informative bound of Eq. (14).

    The bound is below one, above the trivial bound, and above the ratio before training. An
    untrained network therefore does not satisfy it.
    """
    return tail(tables).query("bound < 1 and bound > trivial_bound and bound > start")


def ends(rows: pd.DataFrame, share: float = 1.0) -> pd.DataFrame:
    """Return, for each run, the rows of its last measurement up to a fraction of its final time.

    share: the fraction.
    """
    earlier = rows[rows["time"] <= share * rows.groupby("run")["time"].transform("max")]
    return earlier[earlier["time"] == earlier.groupby("run")["time"].transform("max")]


LAYER = ["run", "layer", "replicate", "separates"]
"""Columns that identify a layer of a network."""


def power(rows: pd.DataFrame, column: str) -> pd.Series:
    """Return for each layer the slope of the log of a column against log ||W||_F^2.

    Layers are identified by LAYER. The slope is over the records, and nan if ||W||_F^2 does not
    change. Values that rounding makes zero or negative have no logarithm and are excluded.
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
