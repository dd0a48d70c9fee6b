"""The parameters of study `low_rank_training`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.names import OPTIMIZERS
from runner.core.streams import RANDOM_PIXELS, orders
from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter
from runner.data import CLASSES

OF_TWO = ("logistic", "exponential", "squared")
"""Losses of the margin y f(x): two classes, one output."""


@dataclass(frozen=True)
class LowRankTraining(TrainingConfig):
    """Paper C on a practical clock: the low rank of a linear tail in training as people do it."""

    study: ClassVar[str] = "low_rank_training"

    architecture: str = parameter(
        "before three linear layers: two ReLU layers (mlp), three ReLU convolutions (conv)",
        "mlp",
        choices=("mlp", "conv"),
    )
    width: int = parameter("w: neurons of each hidden layer", 32, minimum=2)
    channels: int = parameter("channels of each convolution", 8, minimum=1)
    data: str = parameter("the images", "digits", choices=("digits", "fashion_mnist"))
    checksums: list[str] | None = parameter(
        "SHA-256 of the content of each file of the dataset, as in conf/data/<data>.yaml", None
    )
    classes: int = parameter(
        "K: the first so many classes of the dataset; two have one output",
        2,
        minimum=2,
        maximum=CLASSES,
    )
    samples: int = parameter("n: training images of each replicate", 250, minimum=2)
    loss_function: str = parameter(
        "of two classes: of the margin; of more: cross_entropy",
        "logistic",
        choices=(*OF_TWO, "cross_entropy"),
    )
    optimizer: str = parameter(
        "adam has the weight decay in its gradient (coupled), adamw apart from it (decoupled)",
        "sgd",
        choices=(*OPTIMIZERS, "adamw"),
    )
    minibatches: int = parameter(
        "steps in an epoch, each on its share of the images; 1 makes sgd gradient descent",
        1,
        minimum=1,
    )
    gains: list[float] = parameter(
        "starting weights are N(0, gain^2 / fan in)",
        [0.25, 0.5, 1.0],
        above=0,
        maximum=LARGEST_FACTOR,
    )
    learning_rates: list[float] = parameter("of each gain", [0.05], above=0, maximum=LARGEST_STEP)
    weight_decays: list[float] = parameter(
        "lambda, of each gain and rate", [0.0], minimum=0, maximum=LARGEST_FACTOR
    )
    epochs: int = parameter("passes over the training images", 1024, minimum=1)
    dtype: str = parameter("precision of the training", "float32", choices=("float32", "float64"))
    replicates: int = parameter(
        "independent repetitions (images and initialisation)", 5, minimum=1, maximum=MOST
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minibatches > self.samples:
            raise InputError(f"minibatches={self.minibatches}: there are samples={self.samples}")
        known = OF_TWO if self.classes == 2 else ("cross_entropy",)
        if self.loss_function not in known:
            raise InputError(
                f"loss_function={self.loss_function}: classes={self.classes} needs"
                f" loss_function={' or '.join(known)}"
            )

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the random streams."""
        return (*RANDOM_PIXELS, "images", "initialisation", *orders(self.epochs))
