"""The columns of the tables of study `rank_collapse`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class LayerRank(Row):
    """One row for each normalization, replicate and layer, before training."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("normalization", "replicate", "layer")

    normalization: str
    replicate: int
    layer: int = column("0: the input; every layer up to 64, then some layers")
    matrix_rank: float = column(
        "number of singular values above sigma_max d eps; nan if not finite"
    )
    soft_rank: float = column("soft rank rank_tau (Eq. 3) of H, scaled to Tr M = d")
    rank_bound: float = column("r(H), lower bound of the rank, Eq. (4)")
    root_mean_square: float = column("root mean square of the entries of H")


@dataclass(frozen=True)
class TrialEpoch(Row):
    """One row for each normalization, learning rate, replicate and epoch of the trials.

    The trials choose the learning rates, on separate replicates.
    """

    table: ClassVar[str] = "selection"
    keys: ClassVar[tuple[str, ...]] = ("normalization", "replicate", "learning_rate", "epoch")

    normalization: str
    replicate: int
    learning_rate: float
    epoch: int
    train_loss: float = column("nats; mean over the epoch's minibatches, each before its step")
    train_accuracy: float = column("fraction of images with the right class; mean over minibatches")


@dataclass(frozen=True)
class TrainedEpoch(TrialEpoch):
    """One row for each normalization, replicate and epoch, at the chosen learning rate."""

    table: ClassVar[str] = "training"

    test_loss: float = column("nats; at the end of the epoch, with running statistics")
    test_accuracy: float = column(
        "fraction of the test images with the right class, at the same time"
    )
    rank: float = column(
        "rank of the last hidden layer on `samples` training images; nan if diverged"
    )
    rank_bound: float = column("r(H), lower bound of the rank, Eq. (4), of the same representation")
    selected_on: str = column("replicates on which the learning rate was chosen")
