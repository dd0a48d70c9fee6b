"""Quantities of the claims about figures 1 and 2: ranks and accuracies by depth and by layer.

Arguments that recur:

- tables: the tables of a figure's runs; `metrics` has the ranks before training by layer,
  `training` the epochs.
- networks, of: "vanilla" (no normalization), "batch norm", "layer norm" or "RMS norm".
- where: a condition on columns such as `depth` and `width`, as for `DataFrame.query`.

A replicate is an independent repetition. Networks of more than ten layers count as deep. Functions
that compare depths raise NoRows unless there is a deep network. Diverged networks have accuracy
zero.
"""

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.learning import (
    DEEP,
    chance_level,
    learned_share,
    with_divergence,
)
from runner.papers.batch_norm_rank.rank_collapse.tables import (
    rank_of_last_layer,
    trained,
    untrained,
)
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select

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
    """Return the rank of the last hidden layer before training, for each depth and replicate.

    networks: such as "batch norm". where: a condition on columns, as for `DataFrame.query`. Raises
    NoRows if no network meets the condition, or no network has more than ten layers.
    """
    return _by_depth(rank_of_last_layer(tables["metrics"]), networks, where)["matrix_rank"]


@quantity("r of the last layer of {networks} before training", each=("depth",), needs={"depth": 3})
def r(tables: Tables, networks: str, where: str) -> pd.Series:
    """Return r, the lower bound (4) of the rank, of the last hidden layer before training.

    The result has a number for each depth and replicate. networks: such as "batch norm". where: a
    condition on columns, as for `DataFrame.query`. Raises NoRows if no network meets the condition,
    or no network has more than ten layers.
    """
    return _by_depth(rank_of_last_layer(tables["metrics"]), networks, where)["rank_bound"]


@quantity(
    "before training, the rank of the last layer of {networks} is {} √d",
    each=("depth",),
    unit="ratio",
    needs={"depth": 3},
)
def rank_over_root(tables: Tables, networks: str) -> pd.Series:
    """Return the rank of the last hidden layer before training, divided by the root of the width.

    The result has a number for each depth and replicate. networks: such as "batch norm". Raises
    NoRows if none of these networks has more than ten layers.
    """
    rows = _by_depth(rank_of_last_layer(tables["metrics"]), networks)
    return rows["matrix_rank"] / np.sqrt(rows["width"])


@quantity(
    "learned fraction of {networks} at the end of training (0: chance level, 1: all images)",
    each=("depth",),
    needs={"depth": 3},
)
def learned(tables: Tables, networks: str, where: str) -> pd.Series:
    """Return the learned fraction of the training images at the last epoch.

    The learned fraction is 0 at chance level and 1 for a perfect fit. There is a number for each
    depth and replicate. networks: such as "batch norm". where: a condition on columns, as for
    `DataFrame.query`. Raises NoRows if no network meets the condition, or no network has more than
    ten layers.
    """
    return learned_share(_accuracy(tables, networks, where), chance_level(tables))


@quantity(
    "accuracy that {networks} lose from the smallest to the largest depth minus {share}"
    " times the accuracy that {of} lose",
    unit="difference",
    needs={"depth": 3},
)
def accuracy_lost(tables: Tables, networks: str, share: float, of: str) -> pd.Series:
    """Return how much more accuracy one kind of networks loses with depth than another one.

    The loss is the training accuracy at the smallest depth minus the training accuracy at the
    largest depth, at the last epoch. The value is the loss of `networks` minus `share` times the
    loss of `of`, for each replicate.

    networks, of: such as "batch norm" and "vanilla". share: the factor. Raises NoRows if `networks`
    or `of` has no network of more than ten layers.
    """
    lost = {}
    for name in (networks, of):
        by_depth = _accuracy(tables, name).unstack("depth").sort_index(axis="columns")
        lost[name] = by_depth.iloc[:, 0] - by_depth.iloc[:, -1]
    return lost[networks] - share * lost[of]


@quantity(
    "median rank in the deepest third of the layers of plain {activation} networks", each=("dtype",)
)
def rank_of_deepest(tables: Tables, activation: str) -> pd.Series:
    """Return the median rank of the deepest third of the layers of plain networks, before training.

    The result has a number for each precision (`dtype`) and replicate. The median is taken because
    rounding may add one to single ranks. activation: such as "relu". Raises NoRows if no plain
    network has this activation.
    """
    rows = select(tables["metrics"], activation=activation, normalization="none")
    deepest = rows[rows["layer"] > rows["depth"] * 2 / 3]  # rounding may add one to single ranks
    return deepest.groupby(["dtype", "replicate"])["matrix_rank"].median()


@quantity(
    "the rank of every layer of {activation} networks with batch norm (with or without mean"
    " subtraction) is {} √d",
    each=("normalization", "dtype"),
    unit="ratio",
)
def rank_of_layers(tables: Tables, activation: str) -> pd.DataFrame:
    """Return the rank of every layer before training, divided by the root of the width.

    There is a row for each layer, normalization, precision (`dtype`) and replicate. The networks
    have batch norm, with or without mean subtraction, and are not trained, see `untrained`.
    activation: such as "relu". Raises NoRows if no network has this activation.
    """
    rows = select(untrained(tables["metrics"]), activation=activation)
    has_batch_norm = rows["normalization"].isin(["batch", "batch_no_mean"])
    rows = rows[(rows["layer"] > 0) & has_batch_norm]
    return rows.assign(value=rows["matrix_rank"] / np.sqrt(rows["width"]))


@quantity(
    "median r in the deepest third of the layers of networks without batch norm",
    each=("normalization", "activation"),
)
def r_of_deepest(tables: Tables) -> pd.Series:
    """Return the median r of the deepest third of the layers, before training.

    r is the lower bound (4) of the rank. The result has a number for each normalization, activation
    and replicate. The networks have no normalization, layer norm or RMS norm, and are not trained,
    see `untrained`.
    """
    rows = untrained(tables["metrics"])
    rows = rows[rows["normalization"].isin(["none", "layer", "rms"])]
    deepest = rows[rows["layer"] > rows["depth"] * 2 / 3]
    return deepest.groupby(["normalization", "activation", "replicate"])["rank_bound"].median()


@quantity(
    "before training, the rank of the last hidden layer with the {of} is {} that with the {over}",
    unit="ratio",
)
def rank_lowered(tables: Tables, of: str, over: str) -> pd.Series:
    """Return the ratio of two initializations' ranks before training, for each replicate.

    The rank is measured in the last hidden layer. of, over: the initializations of numerator and
    denominator, "pytorch" or "asymmetric". Raises NoRows if an initialization was not run.
    """
    rows = rank_of_last_layer(tables["metrics"])
    ranks = [select(rows, init=init).set_index("replicate")["matrix_rank"] for init in (of, over)]
    return ranks[0] / ranks[1]


@quantity(
    "training accuracy with the {of} minus that with the {over}, averaged over all epochs,",
    unit="difference",
)
def accuracy_ahead(tables: Tables, of: str, over: str) -> pd.Series:
    """Return the difference of two initializations' training accuracies, for each replicate.

    The accuracies are means over all epochs. of, over: the initializations, "pytorch" or
    "asymmetric"; the accuracy of `over` is subtracted. Raises NoRows if an initialization was not
    run.
    """
    rows = with_divergence(tables["training"])
    by = [select(rows, init=init).groupby("replicate")["train_accuracy"] for init in (of, over)]
    return by[0].mean() - by[1].mean()
