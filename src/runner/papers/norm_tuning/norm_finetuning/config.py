"""Parameters of study `norm_finetuning`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.streams import RANDOM_PIXELS, orders
from runner.core.studies import LARGEST_STEP, MOST, TrainingConfig, parameter
from runner.data import LABELLED

OF_PRETRAINED = ("biases", "low_rank")
"""Trained parts that require a pre-trained network."""


@dataclass(frozen=True)
class NormFinetuning(TrainingConfig):
    """Parameters of a supplementary study: training γ and β, or another part, of a ResNet."""

    study: ClassVar[str] = "norm_finetuning"

    arms: list[str] = parameter(
        "parts to train, one after the other; biases and low_rank only with start=pretrained",
        ["norm", "random_weights", "last_layer", "all"],
        choices=("norm", "random_weights", "last_layer", "all", *OF_PRETRAINED),
    )
    start: str = parameter(
        "frozen weights: random, or pre-trained on half of the classes (the other half is learned)",
        "random",
        choices=("random", "pretrained"),
    )
    blocks: int = parameter("n: the ResNet has 6n + 2 layers (1 to 100)", 1, minimum=1, maximum=100)
    width: int = parameter("channels of the first stage", 16, minimum=1, maximum=MOST)
    data: str = parameter("dataset", "digits", choices=LABELLED)
    train_images: int | None = parameter(
        "number of training images, the first of the dataset; null: all", None, minimum=2
    )
    checksums: list[str] | None = parameter(
        "SHA-256 of the content of each file of the dataset, as in conf/data/<data>.yaml", None
    )
    epochs: int = parameter("passes over the training images", 20, minimum=1)
    learning_rates: list[float] = parameter(
        "grid of learning rates of SGD; each part takes its best one",
        [0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        above=0,
        maximum=LARGEST_STEP,
    )
    pretraining_rate: float = parameter(
        "learning rate of SGD in pre-training", 0.1, above=0, maximum=LARGEST_STEP
    )
    batch_size: int = parameter("images of one SGD step", 128, minimum=2, maximum=MOST)
    replicates: int = parameter(
        "independent repetitions (weights and order of the images)", 5, minimum=1, maximum=MOST
    )
    selection_replicates: int = parameter(
        "number of replicates that choose the learning rates; they are not used for results",
        1,
        minimum=1,
        maximum=MOST,
    )
    selection_epochs: int | None = parameter(
        "epochs of training for this choice; null: all", None, minimum=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start == "random" and (wrong := [a for a in self.arms if a in OF_PRETRAINED]):
            raise InputError(f"arms={','.join(wrong)}: only with start=pretrained")
        if self.start == "random":
            self.refuse(["pretraining_rate"], "start=random")
        if (self.selection_epochs or 1) > self.epochs:
            raise InputError(
                f"selection_epochs={self.selection_epochs} is above epochs={self.epochs}"
            )

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes by which the run names its random streams."""
        return (*RANDOM_PIXELS, "initialisation", "trained weights", *orders(self.epochs))
