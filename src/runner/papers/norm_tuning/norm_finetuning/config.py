"""Parameters of study `norm_finetuning`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.choices import Datasets
from runner.core.errors import InputError
from runner.core.streams import RANDOM_PIXELS, SUBSET, orders
from runner.core.studies import LARGEST_STEP, MOST, TrainingConfig, parameter
from runner.data import LABELLED

OF_PRETRAINED = ("biases", "low_rank")
"""Trained parts that require a pre-trained network."""


@dataclass(frozen=True)
class NormFinetuning(TrainingConfig):
    """Parameters of a supplementary study: γ and β of a ResNet, or another part, are trained."""

    study: ClassVar[str] = "norm_finetuning"
    named: ClassVar[tuple[str, ...]] = ("data", "start")

    arms: list[str] = parameter(
        "parts to compare; each is trained alone, in its own copy of the network. biases and"
        " low_rank need start=pretrained",
        ["norm", "random_weights", "last_layer", "all"],
        choices=("norm", "random_weights", "last_layer", "all", *OF_PRETRAINED),
    )
    start: str = parameter(
        "frozen weights: random, or pre-trained on half of the classes (then the other half is"
        " learned)",
        "random",
        choices=("random", "pretrained"),
    )
    blocks: int = parameter("n: the ResNet has 6n + 2 layers (1 to 100)", 1, minimum=1, maximum=100)
    width: int = parameter("number of channels of the first stage", 16, minimum=1, maximum=MOST)
    data: str = parameter(
        "dataset, or your own images (data=stripes.npz)", "digits", choices=Datasets(LABELLED)
    )
    train_images: int | None = parameter(
        "number of training images, from the first one of the dataset on; of your own file: drawn"
        " in equal shares by class (null: all)",
        None,
        minimum=2,
    )
    checksums: list[str] | None = parameter(
        "SHA-256 of the content of each file of the dataset, as in conf/data/<data>.yaml", None
    )
    epochs: int = parameter("number of passes over the training images", 20, minimum=1)
    learning_rates: list[float] = parameter(
        "grid of learning rates of SGD; each part takes its best one",
        [0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        above=0,
        maximum=LARGEST_STEP,
    )
    pretraining_rate: float = parameter(
        "learning rate of SGD in pre-training", 0.1, above=0, maximum=LARGEST_STEP
    )
    batch_size: int = parameter("number of images of one SGD step", 128, minimum=2, maximum=MOST)
    replicates: int = parameter(
        "number of independent repetitions (weights and order of the images)",
        5,
        minimum=1,
        maximum=MOST,
    )
    selection_replicates: int = parameter(
        "number of replicates that choose the learning rates; no result uses them",
        1,
        minimum=1,
        maximum=MOST,
    )
    selection_epochs: int | None = parameter(
        "number of epochs of the training that chooses the learning rates (null: all epochs)",
        None,
        minimum=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start == "random" and (wrong := [a for a in self.arms if a in OF_PRETRAINED]):
            raise InputError(f"arms={','.join(wrong)} needs start=pretrained")
        if self.start == "random":
            self.refuse(["pretraining_rate"], "start=random")
        if (self.selection_epochs or 1) > self.epochs:
            raise InputError(
                f"selection_epochs={self.selection_epochs} is above epochs={self.epochs}"
            )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, one for each kind of random numbers."""
        drawn = (SUBSET,) if self.own_images() else ()
        mine = ("initialisation", "trained weights", *orders(self.epochs))
        return (*RANDOM_PIXELS, *drawn, *mine)
