"""The columns of the tables of study `vgg_size`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class UntrainedNetwork(Row):
    """One row for each method and replicate: the network before training, on `samples` images.

    H is the last hidden representation.
    """

    table: ClassVar[str] = "before"
    keys: ClassVar[tuple[str, ...]] = ("method", "replicate")

    method: str
    replicate: int
    rank: float = column("number of singular values of H above sigma_max d eps")
    rank_bound: float = column("r(H), lower bound of the rank, Eq. (4)")
    size: float = column("root mean square of the entries of H")
    alignment: float = column(
        "mean |cosine| of two images' gradients by the weights of the classifier"
    )
    first_gradient: float = column("Frobenius norm of the loss's gradient by the first convolution")
    last_gradient: float = column("Frobenius norm of the loss's gradient by the last convolution")


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
    train_loss: float = column("nats; mean over the epoch's minibatches, each before its step")
    train_accuracy: float = column("fraction of images with the right class; mean over minibatches")


@dataclass(frozen=True)
class TrainedEpoch(TrialEpoch):
    """One row for each method, replicate and epoch, at the method's chosen learning rate."""

    table: ClassVar[str] = "training"

    selected_on: str = column("replicates on which the learning rate was chosen")
