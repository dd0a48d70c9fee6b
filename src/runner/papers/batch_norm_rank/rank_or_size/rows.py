"""The columns of the tables of study `rank_or_size`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column

LEVEL = "rank k, fraction of flipped signs or size, by family; 0 if a family has one network"


@dataclass(frozen=True)
class BeforeTraining(Row):
    """One row for each family, level and replicate: the last hidden layer H before training.

    H is measured on `samples` training images.
    """

    table: ClassVar[str] = "before"
    keys: ClassVar[tuple[str, ...]] = ("family", "level", "replicate")

    family: str = column("the initialization, a value of `families`")
    level: float = column(LEVEL)
    replicate: int
    judged: bool = column("false: a replicate that only chooses learning rates")
    rank: float = column("number of singular values of H above sigma_max d eps")
    soft_rank: float = column("soft rank rank_tau (Eq. 3) of H, scaled to Tr M = d")
    rank_bound: float = column("r(H), lower bound of the rank, Eq. (4)")
    deviations_bound: float = column("r of the deviations, H minus its mean over the images")
    size: float = column("root mean square of the entries of H")
    spread: float = column("root mean square of the deviations / size")


@dataclass(frozen=True)
class TrainedEpoch(Row):
    """One row for each family, level, replicate, learning rate and epoch, from 1."""

    table: ClassVar[str] = "training"
    keys: ClassVar[tuple[str, ...]] = ("family", "level", "replicate", "learning_rate", "epoch")

    family: str = column("the initialization, a value of `families`")
    level: float = column(LEVEL)
    replicate: int
    judged: bool = column("false: a replicate that only chooses learning rates")
    learning_rate: float
    epoch: int
    train_loss: float = column("nats; mean over minibatches, each before its step")
    train_accuracy: float = column("fraction of images with the right class; mean as train_loss")
