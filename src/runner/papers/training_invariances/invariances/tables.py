"""Selections and summaries of the tables of study `invariances`, for its drawings and claims."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from runner.papers.training_invariances.convergence import order_at_zero
from runner.results.claims import Tables

SERIES = ["run", "data", "architecture", "layer", "place", "pair", "replicate"]
"""What names one quantity of one replicate."""

Choice = Callable[[pd.DataFrame], pd.Series]
"""Which rows of `metrics` a claim is about."""


def final(metrics: pd.DataFrame, integrator: str = "euler") -> pd.DataFrame:
    """The rows at the end of the runs with this integrator on the flow's own clock."""
    rows = metrics[(metrics["integrator"] == integrator) & ~metrics["normalized_time"].astype(bool)]
    return rows[rows["time"] == rows.groupby(["run"])["time"].transform("max")]


def orders(rows: pd.DataFrame) -> pd.DataFrame:
    """The order of convergence of each series with entries: columns SERIES and `order`.

    Series of fewer than three rates have none.
    """
    found = [
        {**dict(zip(SERIES, name, strict=True)), "order": order_at_zero(series)}
        for name, series in rows[rows["entries"] > 0].groupby(SERIES)
    ]
    return pd.DataFrame(found, columns=[*SERIES, "order"]).dropna(subset="order")


def variant(rows: pd.DataFrame) -> pd.Series:
    """What is not as usual in a row's run: its loss, its units, its biases; empty: nothing."""
    loss = rows["loss"].where(rows["loss"] != "logistic", "")
    leaky = np.where(rows["negative_slope"] > 0, " leaky", "")
    return (loss + leaky + np.where(rows["biases"].astype(bool), " biases", "")).str.strip()


def unrolled(tables: Tables) -> pd.Series:
    """The names of the runs whose networks are small enough to list their paths (Lemma 1)."""
    return tables["decomposition"]["run"] if "decomposition" in tables else pd.Series(dtype=object)


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


LIMIT = ["run", "data", "architecture", "layer", "kind", "replicate"]
"""What names one layer of one network."""


def limits(rows: pd.DataFrame) -> pd.DataFrame:
    """The limit of ||W||_2^2 / ||W||_F^2 as ||W||_F^2 grows: columns LIMIT and `limit`.

    From the record at half-time and the last, as if the ratio were its limit + c / ||W||_F^2.
    """
    half, end = (ends(rows, share).set_index(LIMIT) for share in (0.5, 1))
    half = half.reindex(end.index)
    growth = end["frobenius"] - half["frobenius"]
    top, top_half = (each["operator_ratio"] * each["frobenius"] for each in (end, half))
    return ((top - top_half) / growth.where(growth > 0)).rename("limit").reset_index()


def stable(tables: Tables) -> pd.Series:
    """Assumption 1 from half-time on, by run and replicate: whether no weight changes its sign."""
    rows = tables["assumptions"]
    rows = rows[rows["normalized_time"].astype(bool)]
    rows = rows[rows["learning_rate"] == rows.groupby("run")["learning_rate"].transform("min")]
    late = rows[rows["time"] > 0.5 * rows.groupby("run")["time"].transform("max")]
    return late.groupby(["run", "replicate"])["sign_changes"].max() == 0


def power(rows: pd.DataFrame, column: str) -> pd.Series:
    """The exponent of a column in ||W||_F^2 over the records: by run, layer and replicate."""
    keys = ["run", "layer", "replicate"]
    logs = rows[keys].assign(x=np.log(rows["frobenius"]), y=np.log(rows[column]))
    centred = logs["x"] - logs.groupby(keys)["x"].transform("mean")
    sums = logs[keys].assign(xx=centred**2, xy=centred * logs["y"]).groupby(keys).sum()
    return sums["xy"] / sums["xx"].where(sums["xx"] > 0)
