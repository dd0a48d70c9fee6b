"""Parameters of study `low_rank_training`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.choices import OPTIMIZERS, Datasets
from runner.core.errors import InputError
from runner.core.streams import RANDOM_PIXELS, orders
from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter
from runner.data import CLASSES

OF_TWO = ("logistic", "exponential", "squared")
"""Losses of the margin y f(x): two classes, one output."""


@dataclass(frozen=True)
class LowRankTraining(TrainingConfig):
    """Parameters of study `low_rank_training`: ordinary training with linear last layers."""

    study: ClassVar[str] = "low_rank_training"
    named: ClassVar[tuple[str, ...]] = ("architecture",)

    architecture: str = parameter(
        "layers before the three linear layers at the end: two ReLU layers (mlp) or three ReLU"
        " convolutions (conv)",
        "mlp",
        choices=("mlp", "conv"),
    )
    width: int = parameter("w: number of neurons in each hidden layer", 32, minimum=2)
    channels: int = parameter("number of channels of each convolution", 8, minimum=1)
    data: str = parameter(
        "dataset, or your own images (data=stripes.npz)",
        "digits",
        choices=Datasets(("digits", "fashion_mnist")),
    )
    checksums: list[str] | None = parameter(
        "SHA-256 of the content of each file of the dataset, as in conf/data/<data>.yaml", None
    )
    classes: int = parameter(
        "K: number of classes (the first K of the dataset); with two classes the network has one"
        " output",
        2,
        minimum=2,
        maximum=CLASSES,
    )
    samples: int = parameter("n: number of training images of each network", 250, minimum=2)
    loss_function: str = parameter(
        "loss; a function of the margin y f(x) with two classes, cross_entropy with more classes",
        "logistic",
        choices=(*OF_TWO, "cross_entropy"),
    )
    optimizer: str = parameter(
        "optimizer; adam adds the weight decay to the gradient, adamw applies the weight decay"
        " separately",
        "sgd",
        choices=OPTIMIZERS + ("adamw",),
    )
    minibatches: int = parameter(
        "number of steps in an epoch, each on an equal part of the images (1: gradient descent)",
        1,
        minimum=1,
    )
    gains: list[float] = parameter(
        "gains g of the initial weights N(0, g² / number of inputs), a network for each gain",
        [0.25, 0.5, 1.0],
        above=0,
        maximum=LARGEST_FACTOR,
    )
    learning_rates: list[float] = parameter(
        "learning rates; every combination of gain and learning rate is trained",
        [0.05],
        above=0,
        maximum=LARGEST_STEP,
    )
    weight_decays: list[float] = parameter(
        "weight decays λ (0 or more); every combination of gain, learning rate and λ is trained",
        [0.0],
        minimum=0,
        maximum=LARGEST_FACTOR,
    )
    epochs: int = parameter("number of passes over the training images", 1024, minimum=1)
    dtype: str = parameter("precision of the training", "float32", choices=("float32", "float64"))
    replicates: int = parameter(
        "number of independent repetitions (images and initial weights)", 5, minimum=1, maximum=MOST
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minibatches > self.samples:
            raise InputError(f"minibatches={self.minibatches} is above samples={self.samples}")
        allowed = OF_TWO if self.classes == 2 else ("cross_entropy",)
        if self.loss_function not in allowed:
            raise InputError(
                f"loss_function={self.loss_function}: classes={self.classes} needs"
                f" loss_function={' or '.join(allowed)}"
            )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, one for each kind of random numbers."""
        return (*RANDOM_PIXELS, "images", "initialisation", *orders(self.epochs))
