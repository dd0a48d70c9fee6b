"""The columns of the tables of study `pretraining`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class LayerRank(Row):
    """One row for each method, M, step size of pre-training, replicate and layer, before SGD.

    M is the length of pre-training. Replicates that choose the step size have rows of the last
    layer only, at the largest M, for each step size that was tried.
    """

    table: ClassVar[str] = "pretraining"
    keys: ClassVar[tuple[str, ...]] = ("method", "pretraining_steps", "step", "replicate", "layer")

    method: str
    pretraining_steps: int = column("M, number of minibatches or steps of pre-training; 0: none")
    step: float = column("step size of pre-training; 0: no pre-training")
    replicate: int
    judged: bool = column("false: a replicate that only chooses learning rates and step sizes")
    layer: int = column("0: the input")
    matrix_rank: float = column(
        "number of singular values above sigma_max d eps; nan if not finite"
    )
    soft_rank: float = column("soft rank rank_tau (Eq. 3) of H, scaled to Tr M = d")
    rank_bound: float = column("r(H), lower bound of the rank, Eq. (4)")
    root_mean_square: float = column("root mean square of the entries of H")


@dataclass(frozen=True)
class TrainedEpoch(Row):
    """One row for each method, M, replicate, learning rate and epoch; epoch 0 is before training.

    M is the length of pre-training.
    """

    table: ClassVar[str] = "training"
    keys: ClassVar[tuple[str, ...]] = (
        "method",
        "pretraining_steps",
        "replicate",
        "learning_rate",
        "epoch",
    )

    method: str
    pretraining_steps: int
    replicate: int
    judged: bool = column("false: a replicate that only chooses learning rates and step sizes")
    learning_rate: float
    epoch: int
    train_loss: float = column(
        "nats; mean over minibatches, each before its step; epoch 0: on `samples`"
    )
    train_accuracy: float = column("fraction of images with the right class; mean as train_loss")
    test_loss: float = column(
        "at the end of the epoch; protocol authors: statistics of all test images"
    )
    test_accuracy: float = column("fraction of test images with the right class, as test_loss")
    rank: float = column(
        "rank of the last hidden layer on `samples` training images; nan if diverged"
    )
    rank_bound: float = column("r(H), lower bound of the rank, Eq. (4), of the same representation")
    mean_rank_bound: float = column(
        "mean r of figure 6: 1 / (mean of 1 / r over layers), last minibatch"
    )
