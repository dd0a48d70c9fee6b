"""Measure deep networks, pre-trained and others, in each replicate.

Networks are named by their method. Pre-trained networks are named by their M, as `M = 75`, or
`pretrained` in figures with one M. Networks of a replicate share initialization and data. The speed
of learning is the training loss, averaged over all epochs: several networks reach a perfect fit,
sooner or later. Diverged networks have infinite loss and accuracy zero from the epoch of divergence
on.
"""

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.learning import least_lead
from runner.papers.batch_norm_rank.pretraining.tables import (
    against_pretraining,
    at_chosen_rates,
    before_training,
    deepest,
    last_epochs,
    named,
    of_protocol,
    through_training,
)
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty

COLUMNS = {
    "r before training": "mean_rank_bound",
    "r of the last layer before training": "rank_bound",
    "r after training": "mean_rank_bound",
    "training loss": "train_loss",
    "training accuracy": "train_accuracy",
    "test loss": "test_loss",
}
"""Column of the tables, by its name in rules."""

PRINTED = {
    "pretrained": "pre-trained networks",
    "vanilla": "plain networks",
    "batch_norm": "networks with batch norm",
    "batch_norm_asymmetric": "asymmetrically initialized networks with batch norm",
    "scale_matched": "random weights of the same size",
    "M = 5": "pre-trained networks (5 steps)",
    "M = 75": "pre-trained networks (75 steps)",
    "r before training": "mean r before training",
}
"""Printed names of networks and columns."""


def _rows(tables: Tables, column: str, protocol: str) -> pd.DataFrame:
    """Return the rows of a protocol that contain a column of COLUMNS."""
    when = before_training if "before" in column else last_epochs if "after" in column else None
    return of_protocol((when or through_training)(tables), protocol)


def _values(rows: pd.DataFrame, network: str, column: str) -> pd.Series:
    """Return a column of a network by depth and replicate. Raises NoRows if it was not run."""
    return named(rows, network).set_index(["depth", "replicate"])[COLUMNS[column]]


def _lead(rows: pd.DataFrame, network: str, than: str, column: str) -> pd.DataFrame:
    better = _values(rows, network, column) - _values(rows, than, column)
    return _of_network(-better if "loss" in column else better, rows, network)


def _of_network(values: pd.Series, rows: pd.DataFrame, network: str) -> pd.DataFrame:
    """Return values as rows, with M, the pre-training steps or minibatches of the network.

    With means over training, `epochs` is their number.
    """
    longest = named(rows, network).filter(["pretraining_steps", "epochs"]).max()
    more = longest.rename({"pretraining_steps": "M"}).to_dict()
    return values.rename("value").reset_index().assign(**more)


@quantity(
    "advantage of {network}, compared with {than}, in {column} at the largest depth",
    unit="difference",
)
def ahead(
    tables: Tables, network: str, than: str, column: str, protocol: str = "authors"
) -> pd.DataFrame:
    """It is positive if `network` is better: its loss is lower, or its accuracy or r is higher. Losses
    and accuracies are means over all epochs of training.
    """
    return _lead(deepest(_rows(tables, column, protocol)), network, than, column)


@quantity("{column}, {network} − plain networks", each=("depth",), unit="difference")
def raised(tables: Tables, network: str, column: str) -> pd.DataFrame:
    """TODO"""
    return _lead(_rows(tables, column, "authors"), network, "vanilla", column)


@quantity(
    "rise of the training loss from the smallest to the largest depth, {than} − {network}",
    unit="difference",
    needs={"depth": 3},
)
def slowed_less(tables: Tables, network: str, than: str) -> pd.DataFrame:
    """A network's rise is its training loss, averaged over epochs, at the largest depth minus that at
    the smallest. The value is the rise of `than` minus the rise of `network`, for each replicate.
    It is positive if depth slows `network` less.
    """
    rows = _rows(tables, "training loss", "authors")
    ends = rows["depth"].min(), rows["depth"].max()

    def rise(name: str) -> pd.Series:
        shallow, deep = (_values(rows, name, "training loss").xs(depth) for depth in ends)
        return deep - shallow

    return _of_network(rise(than) - rise(network), rows, network)


@quantity(
    "mean training loss at the largest depth, {network} / pre-trained networks",
    each=("dataset",),
    unit="ratio",
)
def loss_ratio(tables: Tables, network: str) -> pd.DataFrame:
    """TODO"""
    rows = against_pretraining(tables)
    at_end = rows["depth"] == rows.groupby("data")["depth"].transform("max")
    ratios = nonempty(rows[at_end & (rows["method"] == network)], f"rows: {network}")
    return ratios.rename(columns={"data": "dataset", "ratio": "value"})


@quantity(
    "log₂(mean r / mean r before training) at every epoch", each=("network",), unit="difference"
)
def doublings(tables: Tables) -> pd.DataFrame:
    """TODO"""
    rows = of_protocol(at_chosen_rates(tables), "authors")
    r = rows.set_index(["epoch", "network", "replicate"])["mean_rank_bound"].sort_index()
    return np.log2(r.drop(index=0) / r.loc[0]).rename("value").reset_index()


OF_EPOCHS = {"r of the last layer": "rank_bound", "mean r": "mean_rank_bound"}
"""Column of r by epoch, by its name in rules."""


@quantity(
    "log₂({column} of the network that begins higher / of the other), in the worst pair and epoch",
    unit="difference",
)
def order_kept(tables: Tables, column: str) -> pd.Series:
    """A pair is two networks of one depth."""
    rows = of_protocol(at_chosen_rates(tables), "authors")
    index, values = ["replicate", "epoch"], OF_EPOCHS[column]
    leads = [
        least_lead(group.pivot(index=index, columns="network", values=values))
        for _, group in rows.groupby("depth")
    ]
    return pd.concat(leads, axis=1).min(axis=1)


OF_FIGURE_6 = ["vanilla", "pretrained", "batch_norm", "batch_norm_asymmetric"]
"""The methods of figure 6."""


@quantity("Spearman's correlation of mean r before training with speed (−1 × mean training loss)")
def correlation_with_r(tables: Tables) -> pd.DataFrame:
    """TODO"""
    keys = ["protocol", "method", "network", "replicate"]
    before = before_training(tables)[[*keys, "mean_rank_bound"]]
    both = before.merge(through_training(tables)[[*keys, "train_loss"]], on=keys)
    both = both.assign(speed=-both["train_loss"])
    alone = both[(both["protocol"] == "authors") & both["method"].isin(OF_FIGURE_6)]

    def correlation(rows: pd.DataFrame) -> pd.Series:
        by = rows.groupby("replicate")[["mean_rank_bound", "speed"]]
        return by.apply(lambda group: group.corr(method="spearman").iloc[0, 1])

    nonempty(both, "networks")
    correlations = pd.DataFrame({"value": correlation(both), "of_figure_6": correlation(alone)})
    return correlations.reset_index()
