"""Measure convolutional networks in each replicate and epoch.

Methods share initialization and order of the data. Each method is read at the learning rate that
was chosen for it. A diverged network has accuracy zero. The learned fraction is 0 at chance level
and 1 for a perfect fit. `fit_of_batch_norm` is the learned fraction of the network with batch norm
at the last epoch. Other networks are compared with it.
"""

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.breaking_bn.tables import LABELS, paths
from runner.papers.batch_norm_rank.learning import chance_level, learned_share, least_lead
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty

LAST = "at the last epoch"

PRINTED = {
    "vanilla": "plain networks",
    "vanilla_100x": "plain networks at 100 times the learning rate",
    "batch_norm": "networks with batch norm",
    "batch_norm_asymmetric": "asymmetrically initialized networks with batch norm",
}
"""Names of methods in printed rules."""


def _of(tables: Tables, method: str, column: str) -> pd.DataFrame:
    """Return a column of a method by epoch (0: before training) and replicate. Raises NoRows if the
    method was not run.
    """
    rows = paths(tables)
    rows = nonempty(rows[rows["method"] == method], f"rows: {LABELS[method]}")
    return rows.pivot(index="epoch", columns="replicate", values=column)


def _learned(tables: Tables, method: str) -> pd.DataFrame:
    """Return the learned fraction, by epoch from 1 on and replicate."""
    accuracy = _of(tables, method, "train_accuracy").drop(index=0)
    return learned_share(accuracy, chance_level(tables))


def _beside_fit(tables: Tables, values: pd.DataFrame) -> pd.DataFrame:
    """Return values by epoch and replicate as rows, with the column `fit_of_batch_norm`."""
    rows = values.unstack().rename("value").reset_index()
    fit = _learned(tables, "batch_norm").iloc[-1]
    return rows.assign(fit_of_batch_norm=rows["replicate"].map(fit))


@quantity("rank before training, {one} / {other}", unit="ratio")
def rank_before(tables: Tables, one: str, other: str) -> pd.Series:
    """TODO"""
    return _of(tables, one, "rank").loc[0] / _of(tables, other, "rank").loc[0]


@quantity(
    "log₂(rank of the network that begins higher / of the other), in the worst pair and epoch",
    unit="difference",
)
def order_kept(tables: Tables) -> pd.Series:
    """TODO"""
    ranks = paths(tables).pivot(index=["replicate", "epoch"], columns="method", values="rank")
    return least_lead(nonempty(ranks, "ranks"))


@quantity("training accuracy at every epoch, {one} − {other}", unit="difference")
def accuracy_ahead(tables: Tables, one: str, other: str) -> pd.Series:
    """TODO"""
    accuracy = (_of(tables, method, "train_accuracy").drop(index=0) for method in (one, other))
    return (next(accuracy) - next(accuracy)).unstack()


@quantity("learned fraction, (accuracy − 0.1) / 0.9, of {method} {when}")
def learned(tables: Tables, method: str, when: str = LAST) -> pd.DataFrame:
    """when: LAST, or other printed words for all epochs after epoch 0."""
    share = _learned(tables, method)
    return _beside_fit(tables, share.tail(1) if when == LAST else share)


@quantity(
    "learned fraction with mean subtraction − learned fraction without it, {when}",
    unit="difference",
)
def gained_by_centring(tables: Tables, when: str = LAST) -> pd.DataFrame:
    """when: LAST, or other printed words for the mean over all epochs after epoch 0."""
    gap = _learned(tables, "batch_norm") - _learned(tables, "batch_norm_no_mean")
    return _beside_fit(tables, gap.tail(1) if when == LAST else gap.mean().to_frame().T)


@quantity("alignment of the gradients of {method}, before training and at every epoch")
def alignment(tables: Tables, method: str) -> pd.Series:
    """TODO"""
    return _of(tables, method, "gradient_alignment").unstack()


@quantity("alignment of the gradients before training, {one} − {other}", unit="difference")
def alignment_before(tables: Tables, one: str, other: str) -> pd.Series:
    """TODO"""
    aligned = (_of(tables, method, "gradient_alignment").loc[0] for method in (one, other))
    return next(aligned) - next(aligned)


@quantity(
    "distance of log accuracies, plain networks: images to random pixels / between two replicates",
    unit="ratio",
)
def distance_of_paths(tables: Tables) -> pd.Series:
    """Each replicate has a network on images and one on random pixels. Their distance is divided by
    the mean distance of the network on images from those of the other replicates.

    A distance is the mean over the epochs after training begins of |difference of log accuracies|.
    Accuracies below 1e-4 count as 1e-4. The two networks of a replicate share initialization and
    order of the data; replicates share neither. The distance of two replicates enters the
    denominators of both, so the sign test over replicates is approximate.
    """
    images, noise = (
        np.log(_of(tables, method, "train_accuracy").drop(index=0).clip(lower=1e-4))
        for method in ("vanilla", "vanilla_random_pixels")
    )
    distances = {
        r: images.drop(columns=r).sub(images[r], axis=0).abs().mean().mean() for r in images
    }
    return (images - noise).abs().mean() / pd.Series(distances)
