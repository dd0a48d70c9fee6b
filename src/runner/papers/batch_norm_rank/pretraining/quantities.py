"""Quantities of the claims about pre-training: numbers about deep networks in each replicate.

A replicate is an independent repetition. All networks of a replicate share initialization and data.
The speed of learning is measured by the training loss, averaged over all epochs, because several
networks reach a perfect fit. Diverged networks have infinite loss and accuracy zero from the epoch
of divergence on.

Arguments that recur:

- tables: the tables of a figure's runs; only `training` is used.
- network, than: a method, such as "vanilla" or "batch_norm". A network pre-trained with M steps or
  minibatches is "M = 75", or "pretrained" in figures with one M.
- column: the name of a measure in words, a key of COLUMNS.
- protocol: "authors", "text" or "ours", the training procedure.
"""

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.learning import least_lead
from runner.papers.batch_norm_rank.pretraining.tables import (
    at_chosen_rates,
    before_training,
    deepest,
    lead,
    named,
    of_protocol,
    through_training,
)
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty

COLUMNS = {
    "r before training": "mean_rank_bound",
    "r of the last layer before training": "rank_bound",
    "rank of the last layer before training": "rank",
    "training loss": "train_loss",
    "training accuracy": "train_accuracy",
    "test loss": "test_loss",
}
"""Column of the tables for each measure, by the measure's name in rules."""


def _rows(tables: Tables, column: str, protocol: str) -> pd.DataFrame:
    """Return the rows of a protocol in which a measure of COLUMNS is to be read.

    Measures before training have the rows of epoch 0. All other measures have the means over all
    epochs.
    """
    when = before_training if "before" in column else through_training
    return of_protocol(when(tables), protocol)


def _values(rows: pd.DataFrame, network: str, column: str) -> pd.Series:
    """Return a measure of a network, a number for each depth and replicate.

    Raises NoRows if the network was not run.
    """
    return named(rows, network).set_index(["depth", "replicate"])[COLUMNS[column]]


def _lead(rows: pd.DataFrame, network: str, than: str, column: str) -> pd.DataFrame:
    better = lead(_values(rows, network, column), _values(rows, than, column), COLUMNS[column])
    return _of_network(better, rows, network)


def _of_network(values: pd.Series, rows: pd.DataFrame, network: str) -> pd.DataFrame:
    """Return values as rows, with the column M, the length of the network's pre-training.

    Rows of means over training get the column `epochs`, too, the number of epochs.
    """
    longest = named(rows, network).filter(["pretraining_steps", "epochs"]).max()
    more = longest.rename({"pretraining_steps": "M"}).to_dict()
    return values.rename("value").reset_index().assign(**more)


def _better_minus_worse(network: str, than: str, column: str, protocol: str) -> str:
    """Return the printed name of `ahead`: of losses, the one of `network` is subtracted."""
    more, less = ("{than}", "{network}") if "loss" in column else ("{network}", "{than}")
    return f"at the largest depth, the {{column}} of {more} minus that of {less}"


@quantity(_better_minus_worse, unit="difference")
def ahead(
    tables: Tables, network: str, than: str, column: str, protocol: str = "authors"
) -> pd.DataFrame:
    """Return how much better a network is than another one at the largest depth.

    The value is the difference of a measure, for each replicate. It is positive if `network` has
    the lower loss, or the higher accuracy, rank or r. Losses and accuracies are means over all
    epochs of training.

    network, than: the two networks, such as "M = 75" and "vanilla". column: the measure, a key of
    COLUMNS. The columns `M` and `epochs` are added: the pre-training steps of `network`, and the
    number of training epochs. Measures before training have no `epochs`. Raises NoRows if a network
    or the protocol was not run.
    """
    return _lead(deepest(_rows(tables, column, protocol)), network, than, column)


@quantity(
    "{column} of {network} minus that of plain networks",
    each=("depth",),
    unit="difference",
)
def raised(tables: Tables, network: str, column: str) -> pd.DataFrame:
    """Return how much better a network is than the plain network, for each depth and replicate.

    The value is the measure of `network` minus the measure of the plain network, with the opposite
    sign for losses. The runs follow the authors' code. network: such as "pretrained". column: a key
    of COLUMNS. The column `M` is added, the pre-training steps of `network`. Raises NoRows if a
    network was not run.
    """
    return _lead(_rows(tables, column, "authors"), network, "vanilla", column)


@quantity(
    "rise of the training loss from the smallest to the largest depth in {than} minus that"
    " in {network}",
    unit="difference",
    needs={"depth": 3},
)
def slowed_less(tables: Tables, network: str, than: str) -> pd.DataFrame:
    """Return how much more depth slows down `than` compared with `network`, for each replicate.

    The rise of a network is the training loss at the largest depth minus the training loss at the
    smallest depth. Losses are means over all epochs. The value is the rise of `than` minus the rise
    of `network`. A positive value means that depth slows down `network` less.

    network, than: such as "pretrained" and "batch_norm". The runs follow the authors' code. Raises
    NoRows if a network was not run.
    """
    rows = _rows(tables, "training loss", "authors")
    ends = rows["depth"].min(), rows["depth"].max()

    def rise(name: str) -> pd.Series:
        shallow, deep = (_values(rows, name, "training loss").xs(depth) for depth in ends)
        return deep - shallow

    return _of_network(rise(than) - rise(network), rows, network)


def _doublings(tables: Tables, column: str) -> pd.DataFrame:
    """Return log2 of a column / its value before training, for network, replicate and epoch.

    Epochs begin at 1. The runs follow the authors' code. Raises NoRows if there are none.
    """
    rows = of_protocol(at_chosen_rates(tables), "authors")
    values = rows.set_index(["epoch", "network", "replicate"])[column].sort_index()
    return np.log2(values.drop(index=0) / values.loc[0]).rename("value").reset_index()


@quantity(
    "the mean r at any epoch is {} that before training",
    each=("network",),
    unit="difference",
    log2=True,
)
def doublings(tables: Tables) -> pd.DataFrame:
    """Return log2(mean r / mean r before training), a row for each network, replicate and epoch.

    The mean r is `mean_rank_bound`, the mean over layers in figure 6. Raises NoRows if no run
    follows the authors' code.
    """
    return _doublings(tables, "mean_rank_bound")


@quantity(
    "the rank of the last layer at any epoch is {} that before training",
    each=("network",),
    unit="difference",
    log2=True,
)
def doublings_of_rank(tables: Tables) -> pd.DataFrame:
    """Return log2(rank / rank before training), a row for each network, replicate and epoch.

    The rank is the one of the last hidden layer. Raises NoRows if no run follows the authors' code.
    """
    return _doublings(tables, "rank")


OF_EPOCHS = {
    "rank of the last layer": "rank",
    "r of the last layer": "rank_bound",
    "mean r": "mean_rank_bound",
}
"""Column of the table `training` for the rank and each measure of r, by its name in rules."""


@quantity(
    "in the pair of networks and the epoch that are least favorable, the {column} of the network"
    " that began higher is {} that of the other",
    unit="difference",
    log2=True,
)
def order_kept(tables: Tables, column: str) -> pd.Series:
    """Return for each replicate by how much training keeps the order of the networks' rank or r.

    For two networks A and B of one depth, the number is log2(rank of A / rank of B) at a later
    epoch. A is the network with the larger rank before training. The value is the smallest number
    over all pairs, depths and epochs from 1 on. A negative value means that a pair changed its
    order. Pairs that begin with equal numbers are excluded.

    column: a key of OF_EPOCHS. The runs follow the authors' code. Raises NoRows if
    there are none or if a depth has only one network.
    """
    rows = of_protocol(at_chosen_rates(tables), "authors")
    index, values = ["replicate", "epoch"], OF_EPOCHS[column]
    leads = [
        least_lead(group.pivot(index=index, columns="network", values=values))
        for _, group in rows.groupby("depth")
    ]
    return pd.concat(leads, axis=1).min(axis=1)


OF_FIGURE_6 = ["vanilla", "pretrained", "batch_norm", "batch_norm_asymmetric"]
"""The methods of figure 6."""


def _correlation(tables: Tables, column: str) -> pd.DataFrame:
    """Return Spearman's correlation of a measure before training with the speed of training.

    There is a correlation for each replicate, over all its networks. The speed is -1 times the
    training loss, averaged over all epochs. The column `of_figure_6` has the correlation over the
    networks of figure 6 alone, with the protocol of the authors' code. Raises NoRows if there are
    no networks.
    """
    keys = ["protocol", "method", "network", "replicate"]
    before = before_training(tables)[[*keys, column]]
    both = before.merge(through_training(tables)[[*keys, "train_loss"]], on=keys)
    both = both.assign(speed=-both["train_loss"])
    alone = both[(both["protocol"] == "authors") & both["method"].isin(OF_FIGURE_6)]

    def correlation(rows: pd.DataFrame) -> pd.Series:
        by = rows.groupby("replicate")[[column, "speed"]]
        # `corr(method="spearman")` would exclude diverged networks, whose speed is -inf.
        return by.apply(lambda group: group.rank().corr().iloc[0, 1])

    nonempty(both, "networks")
    correlations = pd.DataFrame({"value": correlation(both), "of_figure_6": correlation(alone)})
    return correlations.reset_index()


@quantity(
    "Spearman's correlation between mean r before training and the speed of training (the negative"
    " mean training loss)"
)
def correlation_with_r(tables: Tables) -> pd.DataFrame:
    """Return the correlation of mean r, the lower bound (4) of the rank, with the speed."""
    return _correlation(tables, "mean_rank_bound")


@quantity(
    "Spearman's correlation between the rank of the last layer before training and the speed"
    " of training (the negative mean training loss)"
)
def correlation_with_rank(tables: Tables) -> pd.DataFrame:
    """Return the correlation of the rank of the last hidden layer with the speed."""
    return _correlation(tables, "rank")
