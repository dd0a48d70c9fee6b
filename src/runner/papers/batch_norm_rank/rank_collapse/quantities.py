"""Measure networks by depth (figure 1) and by layer (figure 2), in each replicate.

Only networks of more than ten layers are judged as deep. Diverged networks have learned nothing.
"""

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.learning import (
    DEEP,
    chance_level,
    learned_share,
    with_divergence,
)
from runner.papers.batch_norm_rank.rank_collapse.tables import rank_of_last_layer, trained
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select

PRINTED = {
    "vanilla": "plain networks",
    "batch norm": "networks with batch norm",
    "dtype": "precision",
    "float32": "single precision",
    "float64": "double precision",
    "batch": "batch norm",
    "batch_no_mean": "batch norm without mean subtraction",
    "pytorch": "usual initialization",
    "asymmetric": "asymmetric initialization",
    "depth == depth.min()": "the depth is the smallest",
    "depth == depth.max()": "the depth is the largest",
}
"""Printed names of networks, columns and conditions."""

NORMALIZATION = {
    "vanilla": "none",
    "batch norm": "batch",
    "layer norm": "layer",
    "RMS norm": "rms",
}


def _by_depth(rows: pd.DataFrame, networks: str, where: str = "depth > 0") -> pd.DataFrame:
    rows = select(rows, normalization=NORMALIZATION[networks])
    nonempty(rows[rows["depth"] > DEEP], f"network of more than {DEEP} layers")
    return nonempty(rows.query(where), f"network of {where}").set_index(["depth", "replicate"])


def _accuracy(tables: Tables, networks: str, where: str = "depth > 0") -> pd.Series:
    return _by_depth(trained(tables), networks, where)["train_accuracy"]


@quantity(
    "rank of the last layer of {networks} before training", each=("depth",), needs={"depth": 3}
)
def rank(tables: Tables, networks: str, where: str) -> pd.Series:
    """TODO"""
    return _by_depth(rank_of_last_layer(tables["metrics"]), networks, where)["matrix_rank"]


@quantity("r of the last layer of {networks} before training", each=("depth",), needs={"depth": 3})
def r(tables: Tables, networks: str, where: str) -> pd.Series:
    """TODO"""
    return _by_depth(rank_of_last_layer(tables["metrics"]), networks, where)["rank_bound"]


@quantity(
    "rank of the last layer of {networks} before training / √d",
    each=("depth",),
    unit="ratio",
    needs={"depth": 3},
)
def rank_over_root(tables: Tables, networks: str) -> pd.Series:
    """TODO"""
    rows = _by_depth(rank_of_last_layer(tables["metrics"]), networks)
    return rows["matrix_rank"] / np.sqrt(rows["width"])


@quantity(
    "learned fraction, (accuracy − 0.1) / 0.9, of {networks} at the end of training",
    each=("depth",),
    needs={"depth": 3},
)
def learned(tables: Tables, networks: str, where: str) -> pd.Series:
    """TODO"""
    return learned_share(_accuracy(tables, networks, where), chance_level(tables))


@quantity(
    "accuracy lost from the smallest to the largest depth: {networks} − {share} × {of}",
    unit="difference",
    needs={"depth": 3},
)
def accuracy_lost(tables: Tables, networks: str, share: float, of: str) -> pd.Series:
    """TODO"""
    lost = {}
    for name in (networks, of):
        by_depth = _accuracy(tables, name).unstack("depth").sort_index(axis="columns")
        lost[name] = by_depth.iloc[:, 0] - by_depth.iloc[:, -1]
    return lost[networks] - share * lost[of]


@quantity(
    "median rank of the deepest third of the layers, plain {activation} networks", each=("dtype",)
)
def rank_of_deepest(tables: Tables, activation: str) -> pd.Series:
    """TODO"""
    rows = select(tables["metrics"], activation=activation, normalization="none")
    deepest = rows[rows["layer"] > rows["depth"] * 2 / 3]  # rounding may add one to single ranks
    return deepest.groupby(["dtype", "replicate"])["matrix_rank"].median()


@quantity(
    "rank of every layer / √d, {activation} networks with batch norm (mean subtracted or not)",
    each=("normalization", "dtype"),
    unit="ratio",
)
def rank_of_layers(tables: Tables, activation: str) -> pd.DataFrame:
    """TODO"""
    rows = select(tables["metrics"], activation=activation)
    has_batch_norm = rows["normalization"].isin(["batch", "batch_no_mean"])
    rows = rows[(rows["layer"] > 0) & has_batch_norm & (rows["data"] == "gaussian")]
    return rows.assign(value=rows["matrix_rank"] / np.sqrt(rows["width"]))


@quantity(
    "median r of the deepest third of the layers, networks without batch norm",
    each=("normalization", "activation"),
)
def r_of_deepest(tables: Tables) -> pd.Series:
    """TODO"""
    rows = select(tables["metrics"], data="gaussian")
    rows = rows[rows["normalization"].isin(["none", "layer", "rms"])]
    deepest = rows[rows["layer"] > rows["depth"] * 2 / 3]
    return deepest.groupby(["normalization", "activation", "replicate"])["rank_bound"].median()


@quantity("rank of the last hidden layer before training, {of} / {over}", unit="ratio")
def rank_lowered(tables: Tables, of: str, over: str) -> pd.Series:
    """TODO"""
    rows = rank_of_last_layer(tables["metrics"])
    ranks = [select(rows, init=init).set_index("replicate")["matrix_rank"] for init in (of, over)]
    return ranks[0] / ranks[1]


@quantity("training accuracy, mean over the epochs, {of} − {over}", unit="difference")
def accuracy_ahead(tables: Tables, of: str, over: str) -> pd.Series:
    """TODO"""
    rows = with_divergence(tables["training"])
    by = [select(rows, init=init).groupby("replicate")["train_accuracy"] for init in (of, over)]
    return by[0].mean() - by[1].mean()
