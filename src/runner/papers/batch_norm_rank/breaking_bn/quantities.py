"""Quantities of the claims about figures 5, 7, 10 and 13: numbers about convolutional networks.

Unless a function says otherwise, it returns one number for each replicate, that is, for each
independent repetition.

Arguments that recur:

- tables: the tables of a figure's runs; `training` has the epochs, `metrics` the networks before
  training.
- method, one, other: names of methods, keys of LABELS in `tables.py`, such as "batch_norm" or
  "vanilla".

All methods of a replicate share the initialization and the order of the data. Each method is read
at the learning rate that was chosen for it. A diverged network has accuracy zero. The learned
fraction is 0 at chance level and 1 for a perfect fit. The column `fit_of_batch_norm` is the learned
fraction, at the last epoch, of the network with batch norm in the same replicate.
"""

import pandas as pd

from runner.papers.batch_norm_rank.breaking_bn.tables import LABELS, paths
from runner.papers.batch_norm_rank.learning import chance_level, learned_share, least_lead
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty

LAST = "at the last epoch"


def _of(tables: Tables, method: str, column: str) -> pd.DataFrame:
    """Return a column of a method, with a row for each epoch and a column for each replicate.

    Epoch 0 is before training. Raises NoRows if the method was not run.
    """
    rows = paths(tables)
    rows = nonempty(rows[rows["method"] == method], f"rows: {LABELS[method]}")
    return rows.pivot(index="epoch", columns="replicate", values=column)


def _learned(tables: Tables, method: str) -> pd.DataFrame:
    """Return a method's learned fraction, with a row for each epoch from 1 on and a column for each
    replicate.
    """
    accuracy = _of(tables, method, "train_accuracy").drop(index=0)
    return learned_share(accuracy, chance_level(tables))


def _beside_fit(tables: Tables, values: pd.DataFrame) -> pd.DataFrame:
    """Return values as rows with the columns `replicate`, `epoch`, `value` and `fit_of_batch_norm`.

    values: a row for each epoch and a column for each replicate.
    """
    rows = values.unstack().rename("value").reset_index()
    fit = _learned(tables, "batch_norm").iloc[-1]
    return rows.assign(fit_of_batch_norm=rows["replicate"].map(fit))


@quantity("before training, the rank of {one} is {} that of {other}", unit="ratio")
def rank_before(tables: Tables, one: str, other: str) -> pd.Series:
    """Return the ratio of two methods' ranks before training, for each replicate.

    The rank is measured in the last hidden layer. one, other: the methods of numerator and
    denominator, such as "batch_norm". Raises NoRows if a method was not run.
    """
    return _of(tables, one, "rank").loc[0] / _of(tables, other, "rank").loc[0]


@quantity(
    "in the pair of networks and the epoch that are least favorable, the rank of the network that"
    " began with the higher rank is {} that of the other",
    unit="difference",
    log2=True,
)
def order_kept(tables: Tables) -> pd.Series:
    """Return for each replicate by how much training keeps the order of the networks' ranks.

    For two networks A and B the number is log2(rank of A / rank of B) at a later epoch. A is the
    network with the larger rank before training. The value is the smallest number over all pairs
    and all epochs from 1 on. A negative value means that the ranks of a pair changed their order.
    See `learning.least_lead`.

    Raises NoRows if there are fewer than two networks.
    """
    ranks = paths(tables).pivot(index=["replicate", "epoch"], columns="method", values="rank")
    return least_lead(nonempty(ranks, "ranks"))


@quantity("training accuracy of {one} minus that of {other} at every epoch", unit="difference")
def accuracy_ahead(tables: Tables, one: str, other: str) -> pd.Series:
    """Return the difference of two methods' training accuracies, for each replicate and epoch.

    Epochs begin at 1. one, other: the methods, such as "batch_norm"; the accuracy of `other` is
    subtracted. Raises NoRows if a method was not run.
    """
    accuracy = (_of(tables, method, "train_accuracy").drop(index=0) for method in (one, other))
    return (next(accuracy) - next(accuracy)).unstack()


@quantity("learned fraction of {method} {when} (0: chance level, 1: all images)")
def learned(tables: Tables, method: str, when: str = LAST) -> pd.DataFrame:
    """Return a method's learned fraction of the training images.

    The learned fraction is 0 at chance level and 1 for a perfect fit. The column
    `fit_of_batch_norm` has the learned fraction of the network with batch norm at the last epoch.

    method: such as "vanilla". when: LAST gives one row for each replicate, at the last epoch. Any
    other text, such as "at every epoch", gives a row for each replicate and each epoch from 1 on;
    the text is printed in the name of the quantity. Raises NoRows if the method or `batch_norm` was
    not run.
    """
    share = _learned(tables, method)
    return _beside_fit(tables, share.tail(1) if when == LAST else share)


@quantity(
    "learned fraction with mean subtraction minus the learned fraction without it, {when},",
    unit="difference",
)
def gained_by_centring(tables: Tables, when: str = LAST) -> pd.DataFrame:
    """Return the gain from mean subtraction in batch norm, a row for each replicate.

    The value is the learned fraction of `batch_norm` minus the learned fraction of
    `batch_norm_no_mean`. The learned fraction is 0 at chance level and 1 for a perfect fit. The
    column `fit_of_batch_norm` has the learned fraction of `batch_norm` at the last epoch.

    when: LAST takes the last epoch. Any other text takes the mean over all epochs from 1 on; rules
    print the text. Raises NoRows if one of the two methods was not run.
    """
    gap = _learned(tables, "batch_norm") - _learned(tables, "batch_norm_no_mean")
    return _beside_fit(tables, gap.tail(1) if when == LAST else gap.mean().to_frame().T)


@quantity(
    "alignment of gradients (mean absolute cosine of two images' gradients) in {method}, before"
    " training and at every epoch,"
)
def alignment(tables: Tables, method: str) -> pd.Series:
    """Return the alignment of a method's gradients, a row for each replicate and epoch.

    The alignment is the mean absolute cosine of the gradients of two images by the last layer.
    Epoch 0 is before training. method: such as "vanilla". Raises NoRows if the method was not run.
    """
    return _of(tables, method, "gradient_alignment").unstack()


@quantity(
    "alignment of gradients (mean absolute cosine of two images' gradients) before training in"
    " {one} minus that in {other}",
    unit="difference",
)
def alignment_before(tables: Tables, one: str, other: str) -> pd.Series:
    """Return the difference of two methods' gradient alignments before training.

    The alignment is the mean absolute cosine of the gradients of two images by the last layer.
    There is a number for each replicate. one, other: the methods, such as "vanilla"; the alignment
    of `other` is subtracted. Raises NoRows if a method was not run.
    """
    aligned = (_of(tables, method, "gradient_alignment").loc[0] for method in (one, other))
    return next(aligned) - next(aligned)
