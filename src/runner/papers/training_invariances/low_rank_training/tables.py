"""Select and summarize the tables of study `low_rank_training`, for figures and claims.

The tables `layers` and `spectrum` have only the three linear layers at the end of each network. A
network is identified by the columns NETWORK. Networks that diverge are those whose loss is not
finite, or rises above twice its initial value.
"""

import numpy as np
import pandas as pd

from runner.results.rows import Tables, nonempty

NETWORK = ["run", "gain", "learning_rate", "weight_decay", "replicate"]
"""Columns that identify a network."""

METHODS = ["gradient descent", "SGD", "momentum", "Adam", "AdamW"]
"""Values of the column `method`."""


def marked(tables: Tables, name: str = "layers") -> pd.DataFrame:
    """Return a table with two more columns, `method` and `diverged`.

    `method` is the printed name of the optimizer, a value of METHODS. `diverged` is whether the
    network diverges at any time. name: the table, `layers`, `training` or `spectrum`.
    """
    rows = tables[name]
    measured = {"layers": "frobenius", "training": "loss", "spectrum": "singular_value"}[name]
    bad = rows["diverged"].astype(bool) | ~np.isfinite(rows[measured].astype(float))
    diverged = bad.groupby([rows[column] for column in NETWORK]).transform("any")
    return rows.assign(method=_method, diverged=diverged)


def steady(tables: Tables, name: str = "layers") -> pd.DataFrame:
    """Return the rows of `marked` for one dataset, without networks that diverge.

    The dataset is digits, if the table has it. name: the table, `layers`, `training` or `spectrum`.
    Raises NoRows if all networks diverge.
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
    """Return the rows of all layers except the output layer, a run's layer with the largest number.

    The rank of the output layer is at most the number of outputs, so its singular values are
    different. rows: rows of the table `layers` or `spectrum`.
    """
    return rows[rows["layer"] < rows.groupby("run")["layer"].transform("max")]


def ends(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each run's last epoch."""
    return rows[rows["epoch"] == rows.groupby("run")["epoch"].transform("max")]


def last(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the layer with the largest number in each run."""
    return rows[rows["layer"] == rows.groupby("run")["layer"].transform("max")]


def last_inner(tables: Tables, name: str = "layers") -> pd.DataFrame:
    """Return the rows of the last layer before the output layer, for one dataset.

    Networks that diverge are excluded, see `steady`. name: the table, `layers` or `spectrum`.
    Raises NoRows if all networks diverge.
    """
    return last(inner(steady(tables, name)))


def with_loss(tables: Tables) -> pd.DataFrame:
    """Return the last layer before the output layer of each network, with its training loss.

    The rows are those of `last_inner`, and `loss` is a new column. Raises NoRows if all networks
    diverge.
    """
    training = steady(tables, "training")[[*NETWORK, "epoch", "loss"]]
    return last_inner(tables).merge(training, on=[*NETWORK, "epoch"])


def by_gain(tables: Tables) -> pd.DataFrame:
    """Return the layers of `plain` at the width that was trained with the most gains.

    They are the last layers before the output layer, of MLPs under gradient descent. A gain is the
    size of the initial weights. Raises NoRows if there are no rows.
    """
    rows = plain(tables)
    return rows[rows["width"] == rows.groupby("width")["gain"].nunique().idxmax()]


def plain(tables: Tables) -> pd.DataFrame:
    """Return the last layer before the output layer, for MLPs under plain gradient descent.

    The MLPs have no weight decay, and the logistic loss or the cross entropy. Raises NoRows if
    there are none.
    """
    rows = last_inner(tables).query(
        "method == 'gradient descent' and weight_decay == 0 and architecture == 'mlp'"
        " and dtype == 'float32' and loss_function in ('logistic', 'cross_entropy')"
    )
    return nonempty(rows, "rows of gradient descent without decay")


def by_decay(layers: pd.DataFrame) -> pd.DataFrame:
    """Return the inner layers at the end of runs with weight decay, compared with no decay.

    Inner layers are linear layers before the output layer. There are three new columns:

    - `decayed`: the remainder divided by that of the same replicate without decay. The remainder is
      the sum of all squared singular values except the k largest.
    - `exponent`: 2 lambda T, with weight decay lambda and training time T.
    - `diverged`: whether training diverged, with or without decay.

    layers: rows of `marked` or `steady`. Raises NoRows if there are no runs both with and without
    decay.
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
