"""The columns of the tables of study `breaking_bn`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class UntrainedNetwork(Row):
    """One row for each untrained network (method, replicate): measures of its last hidden layer."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("method", "replicate")

    method: str
    replicate: int
    parameters: int = column("number of weights, biases, scales and shifts of the network")
    matrix_rank: float = column(
        "number of singular values above sigma_max d eps; nan if not finite"
    )
    soft_rank: float = column("soft rank rank_tau (Eq. 3) of H, scaled to Tr M = d")
    rank_bound: float = column("r(H), Eq. (4); nan if H is zero or not finite")
    gradient_alignment: float = column("mean |cosine| of per-sample gradients of the last layer")


@dataclass(frozen=True)
class TrialEpoch(Row):
    """One row for each method, learning rate, replicate and epoch of the trials.

    The trials choose the learning rates, on separate replicates. Numbers of diverged networks are
    nan.
    """

    table: ClassVar[str] = "selection"
    keys: ClassVar[tuple[str, ...]] = ("method", "replicate", "learning_rate", "epoch")

    method: str
    replicate: int
    learning_rate: float
    epoch: int
    steps: int = column("steps of SGD so far")
    train_loss: float = column("nats; mean over the epoch's minibatches, each before its step")
    train_accuracy: float = column("fraction of images with the right class; mean over minibatches")
    test_loss: float = column("nats; at the end of the epoch, with running statistics")
    test_accuracy: float = column(
        "fraction of the test images with the right class, at the same time"
    )
    rank: float = column("rank of the last hidden layer on `samples` training images")
    rank_bound: float = column("r(H), lower bound of the rank, Eq. (4), of the same representation")
    gradient_alignment: float = column("mean |cosine| of per-sample gradients of the last layer")


@dataclass(frozen=True)
class TrainedEpoch(TrialEpoch):
    """One row for each method, replicate and epoch, at the method's chosen learning rate."""

    table: ClassVar[str] = "training"

    selected_on: str = column("replicates on which the learning rate was chosen")
