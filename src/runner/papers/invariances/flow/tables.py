"""Selections and summaries of the tables of study `invariances`, for its drawings and claims."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from runner.results.claims import Tables

SERIES = ["data", "architecture", "layer", "place", "pair", "replicate"]
"""What names one quantity of one replicate."""

Choice = Callable[[pd.DataFrame], pd.Series]
"""Which rows of `metrics` a claim is about."""

ITEMS = {
    1: "consecutive fully connected layers",
    2: "consecutive convolutions",
    3: "within residual blocks (identity, diagonal, free)",
    4: "between free residual blocks",
    5: "a convolution and a fully connected layer",
    6: "a convolution and a free residual block",
    7: "free residual blocks and fully connected layers",
}
"""The items of Theorem 1: between which layers D is invariant."""


def final(metrics: pd.DataFrame, integrator: str = "euler") -> pd.DataFrame:
    """The rows at the end of the runs with this integrator on the flow's own clock."""
    rows = metrics[(metrics["integrator"] == integrator) & ~metrics["normalized_time"].astype(bool)]
    return rows[rows["time"] == rows.groupby(["run"])["time"].transform("max")]


def orders(rows: pd.DataFrame) -> pd.DataFrame:
    """The order of convergence of each series with entries: columns SERIES and `order`."""
    found = []
    for name, series in rows[rows["entries"] > 0].groupby(SERIES):
        if series["learning_rate"].nunique() > 1:
            x, drift = np.log(series["learning_rate"]), series["drift"]
            # No drift at all converges faster than any power.
            order = np.polyfit(x, np.log(drift), 1)[0] if (drift > 0).all() else np.inf
            found.append({**dict(zip(SERIES, name, strict=True)), "order": order})
    return pd.DataFrame(found, columns=[*SERIES, "order"])


def part(pair: str, linear: bool | None = None, promised: bool = True) -> Choice:
    """Rows of one part of the invariants: promised or not, of linear neurons, nonlinear, both."""

    def choose(rows: pd.DataFrame) -> pd.Series:
        chosen = (rows["pair"] == pair) & (rows["promised"] == promised)
        return chosen if linear is None else chosen & (rows["linear"] == linear)

    return choose


def item(number: int) -> Choice:
    """Rows of an item of Theorem 1: all of D, or the pairs of one pattern of nonlinear neurons."""

    def choose(rows: pd.DataFrame) -> pd.Series:
        part = np.where(rows["linear"], "full", "active")
        return (rows["item"] == number) & (rows["pair"] == part)

    return choose


def unlearned(kind: str, pair: str) -> Choice:
    """Rows of neurons beside a skip connection of this kind, between blocks."""

    def choose(rows: pd.DataFrame) -> pd.Series:
        beside = rows["place"].str.contains(f"residual_{kind}") & (rows["item"] == 0)
        return beside & (rows["pair"] == pair)

    return choose


def tail(tables: Tables) -> pd.DataFrame:
    """Layers that Theorem 2 speaks of, at the finest rate of the runs on the normalized clock."""
    rows = tables["lowrank"]
    rows = rows[rows["normalized_time"].astype(bool) & rows["bound"].notna()]
    return rows[rows["learning_rate"] == rows.groupby("run")["learning_rate"].transform("min")]


def separating(rows: pd.DataFrame) -> pd.DataFrame:
    """The replicates whose risk falls below loss(0) / n, so that every example is on its side.

    Corollary 1 asks for it (the assumption of Ji and Telgarsky 2020), and without it the norms need
    not diverge: a ReLU network can end with all units off for a whole class.
    """
    return rows[rows.groupby(["run", "replicate"])["separates"].transform("any")]


def ends(rows: pd.DataFrame, share: float = 1.0) -> pd.DataFrame:
    """The rows at the record nearest below this share of the time."""
    earlier = rows[rows["time"] <= share * rows.groupby("run")["time"].transform("max")]
    return earlier[earlier["time"] == earlier.groupby("run")["time"].transform("max")]


def power(rows: pd.DataFrame, column: str) -> pd.Series:
    """The exponent of a column in ||W||_F^2 over the records: by run, layer and replicate."""
    keys = ["run", "layer", "replicate"]
    logs = rows[keys].assign(x=np.log(rows["frobenius"]), y=np.log(rows[column]))
    centred = logs["x"] - logs.groupby(keys)["x"].transform("mean")
    sums = logs[keys].assign(xx=centred**2, xy=centred * logs["y"]).groupby(keys).sum()
    return sums["xy"] / sums["xx"].where(sums["xx"] > 0)
