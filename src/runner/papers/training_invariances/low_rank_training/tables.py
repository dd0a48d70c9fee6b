"""Selections and summaries of the tables of study `low_rank_training`, for drawings and claims."""

import numpy as np
import pandas as pd

from runner.results.claims import Tables
from runner.results.rows import nonempty

NETWORK = ["run", "gain", "learning_rate", "weight_decay", "replicate"]
"""What names a network."""

METHODS = ["gradient descent", "SGD", "momentum", "Adam", "AdamW"]
"""The values of the column `method`."""


def marked(tables: Tables, name: str = "layers") -> pd.DataFrame:
    """A table with the columns `method` and `diverged`, whether the network does at any time."""
    rows = tables[name]
    measured = {"layers": "frobenius", "training": "loss", "spectrum": "singular_value"}[name]
    bad = rows["diverged"].astype(bool) | ~np.isfinite(rows[measured].astype(float))
    diverged = bad.groupby([rows[column] for column in NETWORK]).transform("any")
    return rows.assign(method=_method, diverged=diverged)


def steady(tables: Tables, name: str = "layers") -> pd.DataFrame:
    """A table without the networks that diverge. Raises NoRows when all do."""
    rows = marked(tables, name)
    return nonempty(rows[~rows["diverged"]], f"network that did not diverge in table {name}")


def _method(rows: pd.DataFrame) -> np.ndarray:
    named = {"momentum": METHODS[2], "adam": METHODS[3], "adamw": METHODS[4]}
    sgd = np.where(rows["minibatches"] == 1, *METHODS[:2])
    others = rows["optimizer"].map(named).fillna(rows["optimizer"])
    return np.where(rows["optimizer"] == "sgd", sgd, others)


def inner(rows: pd.DataFrame) -> pd.DataFrame:
    """The layers of the tail but the last, which has as many singular values as outputs."""
    return rows[rows["layer"] < rows.groupby("run")["layer"].transform("max")]


def ends(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of each run's last epoch."""
    return rows[rows["epoch"] == rows.groupby("run")["epoch"].transform("max")]


def over_start(rows: pd.DataFrame, column: str = "remainder") -> pd.Series:
    """A column of the layers over what it was at epoch 0."""
    keys = [*NETWORK, "layer"]
    start = rows[rows["epoch"] == 0].set_index(keys)[column]
    return rows[column] / start.reindex(pd.MultiIndex.from_frame(rows[keys])).to_numpy()


def by_gain(layers: pd.DataFrame) -> pd.DataFrame:
    """The inner layers under gradient descent, without decay: at the width with the most gains.

    Of MLPs, and the logistic loss or the cross entropy. Raises NoRows when there are none.
    """
    rows = plain(inner(layers))
    gains = rows.groupby(["data", "width"])["gain"].nunique()
    best = gains.groupby("data").idxmax()
    return rows[[pair in set(best) for pair in zip(rows["data"], rows["width"], strict=True)]]


def plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of gradient descent on MLPs by the logistic loss or the cross entropy, no decay."""
    chosen = (rows["method"] == METHODS[0]) & (rows["weight_decay"] == 0)
    chosen &= (rows["architecture"] == "mlp") & (rows["dtype"] == "float32")
    chosen &= rows["loss_function"].isin(["logistic", "cross_entropy"])
    return nonempty(rows[chosen], "rows of gradient descent without decay")


def by_width(tables: Tables) -> pd.DataFrame:
    """The inner layers of two classes under gradient descent, at the gain with the most widths.

    At the latest time that was measured at every width.
    """
    rows = plain(inner(steady(tables)))
    rows = nonempty(rows[rows["classes"] == 2], "rows of two classes")
    best = rows.groupby("gain")["width"].nunique().idxmax()
    return at_common_time(rows[rows["gain"] == best], ["data"], "width")


def at_common_time(rows: pd.DataFrame, groups: list[str], across: str) -> pd.DataFrame:
    """In each group the rows of the latest time that all values of a column were measured at.

    Raises NoRows when no group has such a time.
    """
    latest = []
    for _, each in rows.groupby(groups):
        counts = each.groupby("time")[across].nunique()
        shared = counts.index[counts == each[across].nunique()]
        latest.append(each[each["time"] == shared.max()] if len(shared) else each.iloc[:0])
    return nonempty(pd.concat(latest), f"time at which every {across} was measured")


def by_decay(layers: pd.DataFrame) -> pd.DataFrame:
    """The inner layers at the end of runs with weight decay, beside their like without.

    Columns `decayed` (remainder over that without decay, same replicate), `exponent` (2 lambda T)
    and `diverged`, of either. Raises NoRows when there are none.
    """
    rows = ends(inner(layers))
    keys = ["run", "gain", "learning_rate", "replicate", "layer"]
    without = rows.loc[rows["weight_decay"] == 0, [*keys, "remainder", "diverged"]]
    rows = nonempty(rows[rows["weight_decay"] > 0], "rows with weight decay")
    rows = rows.merge(without, on=keys, suffixes=("", "_without"))
    rows = nonempty(rows, "runs both with and without weight decay")
    return rows.assign(
        decayed=rows["remainder"] / rows["remainder_without"],
        exponent=2 * rows["weight_decay"] * rows["time"],
        diverged=rows["diverged"] | rows["diverged_without"],
    )


def by_rate(tables: Tables) -> pd.DataFrame:
    """The inner layers in float64 at one time, at several rates; columns `method` and `drift`."""
    rows = inner(steady(tables))
    rows = rows[(rows["dtype"] == "float64") & (rows["epoch"] > 0)]
    rows = nonempty(rows, "rows in float64")
    return at_common_time(rows, ["data", "method"], "learning_rate")


def ten_class_spectra(tables: Tables) -> pd.DataFrame:
    """Singular values at the end of the inner layers of SGD, ten classes: none and most decay."""
    rows = inner(steady(tables, "spectrum"))
    rows = rows[(rows["classes"] > 2) & (rows["method"] == METHODS[1])]
    rows = nonempty(rows, "spectra of more than two classes by SGD")
    return rows[rows["weight_decay"].isin([rows["weight_decay"].min(), rows["weight_decay"].max()])]
