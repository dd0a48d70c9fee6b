"""The columns of the tables of study `norm_finetuning`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class Size(Row):
    """A row of the table `metrics.csv`: the number of trained parameters of one network.

    A network is identified by its arm, the part that is trained, and its replicate.
    """

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("arm", "replicate")

    arm: str
    replicate: int
    trained: int = column("number of trained parameters")
    parameters: int = column("number of parameters of the whole network")


@dataclass(frozen=True)
class TrialEpoch(Row):
    """A row of the table `selection.csv`: one epoch of a network that tries a learning rate.

    The best rate is then chosen. There is a row for each arm, learning rate, selection replicate
    and epoch. An arm is the part of the network that is trained. Numbers of diverged networks are
    nan.
    """

    table: ClassVar[str] = "selection"
    keys: ClassVar[tuple[str, ...]] = ("arm", "replicate", "learning_rate", "epoch")

    arm: str
    replicate: int
    learning_rate: float
    epoch: int
    train_loss: float = column("nats; mean over the epoch's minibatches, each before its step")
    train_accuracy: float = column(
        "fraction of images with the right class, mean over the minibatches"
    )
    test_loss: float = column("at the end of the epoch, with running statistics")
    test_accuracy: float = column(
        "fraction of test images with the right class, at the end of the epoch"
    )


@dataclass(frozen=True)
class TrainedEpoch(TrialEpoch):
    """A row of the table `training.csv`: one epoch of a network at the chosen learning rate.

    There is a row for each arm, replicate and epoch. An arm is the part of the network that is
    trained.
    """

    table: ClassVar[str] = "training"

    selected_on: str = column("replicates on which the learning rate was chosen")
