"""Parameters of study `small_copies`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.choices import Datasets
from runner.core.streams import RANDOM_PIXELS
from runner.core.studies import LARGEST_STEP, MOST, StudyConfig, parameter


@dataclass(frozen=True)
class SmallCopies(StudyConfig):
    """Parameters of study `small_copies`: two experiments that the introduction explains."""

    study: ClassVar[str] = "small_copies"
    named: ClassVar[tuple[str, ...]] = ("data",)

    data: str = parameter(
        "dataset, or your own images (data=stripes.npz)",
        "digits",
        choices=Datasets(("digits", "cifar10", "fashion_mnist")),
    )
    checksums: list[str] | None = parameter(
        "SHA-256 of the content of each file of the dataset, as in conf/data/<data>.yaml", None
    )
    samples: int = parameter("n: number of training images of each network", 500, minimum=2)
    width: int = parameter("number of neurons in each hidden layer", 64, minimum=2)
    channels: int = parameter(
        "number of channels of the first of two convolutions; the second has twice as many",
        16,
        minimum=1,
    )
    depths: list[int] = parameter(
        "numbers of layers of the fully connected networks, a network for each",
        [2, 4, 8, 16],
        minimum=2,
        maximum=MOST,
    )
    steps: int = parameter("number of training steps, each on all images", 400, minimum=1)
    convolutional_learning_rate: float = parameter(
        "learning rate of the convolutional network (cross-entropy, momentum)",
        0.05,
        above=0,
        maximum=LARGEST_STEP,
    )
    learning_rate: float = parameter(
        "learning rate of the fully connected networks (squared loss, momentum)",
        0.02,
        above=0,
        maximum=LARGEST_STEP,
    )
    replicates: int = parameter(
        "number of independent repetitions (images and initial weights)", 5, minimum=1, maximum=MOST
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, one for each kind of random numbers."""
        return (*RANDOM_PIXELS, "images", "initialisation")
