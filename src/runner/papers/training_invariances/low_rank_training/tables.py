"""Select and summarize the tables of study `low_rank_training`, for figures and claims."""

import numpy as np
import pandas as pd

from runner.results.rows import Tables, nonempty

NETWORK = ["run", "gain", "learning_rate", "weight_decay", "replicate"]
"""Columns that identify a network."""

METHODS = ["gradient descent", "SGD", "momentum", "Adam", "AdamW"]
"""Values of the column `method`."""


def marked(tables: Tables, name: str = "layers") -> pd.DataFrame:
    """Return a table with the columns `method`, the optimizer's name, and `diverged`.

    diverged: whether the network diverges at any time. name: the table, `layers`, `training` or
    `spectrum`.
    """
    rows = tables[name]
    measured = {"layers": "frobenius", "training": "loss", "spectrum": "singular_value"}[name]
    bad = rows["diverged"].astype(bool) | ~np.isfinite(rows[measured].astype(float))
    diverged = bad.groupby([rows[column] for column in NETWORK]).transform("any")
    return rows.assign(method=_method, diverged=diverged)


def steady(tables: Tables, name: str = "layers") -> pd.DataFrame:
    """Return a table for the dataset that is drawn, without networks that diverge.

    The dataset is digits, if the table has it. name: the table. Raises NoRows if all networks
    diverge.
    """
    rows = marked(tables, name)
    rows = rows[(rows["data"] == rows["data"].min()) & ~rows["diverged"]]
    return nonempty(rows, f"network that did not diverge in table {name}")


def _method(rows: pd.DataFrame) -> np.ndarray:
    named = {"momentum": METHODS[2], "adam": METHODS[3], "adamw": METHODS[4]}
    sgd = np.where(rows["minibatches"] == 1, *METHODS[:2])
    names = rows["optimizer"].map(named).fillna(rows["optimizer"])
    return np.where(rows["optimizer"] == "sgd", sgd, names)


def inner(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of all layers except the output layer, the one with a run's largest number.

    rows: rows of `layers` or `spectrum`, which have only the linear layers at the end of the
    network. The output layer is excluded because its rank is at most the number of outputs.
    """
    return rows[rows["layer"] < rows.groupby("run")["layer"].transform("max")]


def ends(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each run's last epoch."""
    return rows[rows["epoch"] == rows.groupby("run")["epoch"].transform("max")]


def last(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last layer of each run."""
    return rows[rows["layer"] == rows.groupby("run")["layer"].transform("max")]


def last_inner(tables: Tables, name: str = "layers") -> pd.DataFrame:
    """Return the rows of the last layer before the output layer, without networks that diverge.

    name: the table, `layers` or `spectrum`. The rows are those of `steady`, of one dataset. Raises
    NoRows if all networks diverge.
    """
    return last(inner(steady(tables, name)))


def with_loss(tables: Tables) -> pd.DataFrame:
    """Return the rows of `last_inner` with the training loss.

    Raises NoRows if all networks diverge.
    """
    training = steady(tables, "training")[[*NETWORK, "epoch", "loss"]]
    return last_inner(tables).merge(training, on=[*NETWORK, "epoch"])


def over_start(rows: pd.DataFrame, column: str) -> pd.Series:
    """Return a column of rows of one layer, divided by the network's value at epoch 0."""
    start = rows[rows["epoch"] == 0].set_index(NETWORK)[column]
    return rows[column] / start.reindex(pd.MultiIndex.from_frame(rows[NETWORK])).to_numpy()


def by_gain(tables: Tables) -> pd.DataFrame:
    """Return the rows of `plain` at the width with the most gains.

    These are MLPs under gradient descent without weight decay. Raises NoRows if the tables have
    none.
    """
    rows = plain(tables)
    return rows[rows["width"] == rows.groupby("width")["gain"].nunique().idxmax()]


def plain(tables: Tables) -> pd.DataFrame:
    """Return the last inner layer of MLPs under gradient descent without weight decay.

    The loss is the logistic loss or the cross entropy. Raises NoRows if the tables have none.
    """
    rows = last_inner(tables).query(
        "method == 'gradient descent' and weight_decay == 0 and architecture == 'mlp'"
        " and dtype == 'float32' and loss_function in ('logistic', 'cross_entropy')"
    )
    return nonempty(rows, "rows of gradient descent without decay")


def by_width(tables: Tables) -> pd.DataFrame:
    """Return the rows of `plain` for two classes, at the gain with the most widths.

    The time is the latest one that was measured at every width. Raises NoRows if there is none.
    """
    rows = nonempty(plain(tables).query("classes == 2"), "rows of two classes")
    best = rows.groupby("gain")["width"].nunique().idxmax()
    return at_common_time(rows[rows["gain"] == best], "width")


def at_common_time(rows: pd.DataFrame, across: str) -> pd.DataFrame:
    """Return each method's rows at the latest time measured for all its values of a column.

    across: the column. Raises NoRows if no time has all values.
    """
    seen = rows.groupby(["method", "time"])[across].transform("nunique")
    rows = rows[seen == rows.groupby("method")[across].transform("nunique")]
    rows = rows[rows["time"] == rows.groupby("method")["time"].transform("max")]
    return nonempty(rows, f"time at which every {across} was measured")


def by_decay(layers: pd.DataFrame) -> pd.DataFrame:
    """Return the inner layers at the end of runs with weight decay, matched with runs without it.

    The columns are `decayed` (remainder / remainder of the same replicate without decay),
    `exponent` (2 lambda T) and `diverged` (with or without decay). Raises NoRows if the tables have
    none.
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
    """Return the last inner layer of runs in float64 at one time, at several learning rates.

    The time is the latest one that was measured at every learning rate. Raises NoRows if there is
    none.
    """
    rows = last_inner(tables).query("dtype == 'float64' and epoch > 0")
    return at_common_time(nonempty(rows, "rows in float64"), "learning_rate")


def ten_class_spectra(tables: Tables) -> pd.DataFrame:
    """Return the singular values of the last inner layer after SGD on more than two classes.

    The networks have the smallest or the largest weight decay. Raises NoRows if there are none.
    """
    rows = last_inner(tables, "spectrum").query("classes > 2 and method == 'SGD'")
    rows = nonempty(rows, "spectra of more than two classes by SGD")
    return rows[rows["weight_decay"].isin([rows["weight_decay"].min(), rows["weight_decay"].max()])]
