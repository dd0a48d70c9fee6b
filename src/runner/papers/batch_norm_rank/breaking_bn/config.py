"""Parameters of study `breaking_bn`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.choices import ARCHITECTURES, Datasets
from runner.core.streams import orders
from runner.core.studies import LARGEST_STEP, MOST, parameter
from runner.data import LABELLED
from runner.papers.batch_norm_rank.images_config import OnImages

BREAKING_METHODS = (
    "batch_norm",
    "batch_norm_asymmetric",
    "batch_norm_no_mean",
    "vanilla",
    "vanilla_100x",
    "vanilla_random_pixels",
)


@dataclass(frozen=True)
class BreakingBN(OnImages):
    """Parameters of study `breaking_bn`, figures 5, 7, 10 and 13 of paper B.

    The study trains convolutional networks with and without batch norm, from the usual and from an
    asymmetric initialization.
    """

    study: ClassVar[str] = "breaking_bn"
    named: ClassVar[tuple[str, ...]] = ("architecture",)
    version: ClassVar[int] = 3  # learning rates are chosen by the worst of separate replicates

    architecture: str = parameter("convolutional network", "vgg19", choices=ARCHITECTURES)
    multiplier: float = parameter(
        "factor by which all numbers of channels are multiplied (1: the published network)",
        0.125,
        above=0,
        maximum=100,
    )
    methods: list[str] = parameter(
        "networks to compare",
        ["batch_norm", "batch_norm_asymmetric", "batch_norm_no_mean", "vanilla"],
        choices=BREAKING_METHODS,
    )
    data: str = parameter(
        "dataset, or your own images (data=stripes.npz)", "digits", choices=Datasets(LABELLED)
    )
    image_size: int | None = parameter(
        "side of the resized images in pixels (null: images are not resized)",
        16,
        minimum=1,
        maximum=1000,
    )
    samples: int = parameter(
        "N: number of inputs on which ranks and gradients are measured", 512, minimum=2
    )
    epochs: int = parameter("number of passes over the training images", 20, minimum=1)
    learning_rates: list[float] = parameter(
        "learning rates of SGD to try; each network is judged at the one at which it learns"
        " fastest. vanilla_100x uses 100 times the learning rate of vanilla;"
        " vanilla_random_pixels uses the learning rate of vanilla",
        [0.01, 0.03, 0.1],
        above=0,
        maximum=LARGEST_STEP,
    )
    selection_replicates: int = parameter(
        "number of replicates that choose the learning rate; no result uses them",
        2,
        minimum=1,
        maximum=MOST,
    )
    batch_size: int = parameter("number of images of one SGD step", 128, minimum=2, maximum=MOST)
    replicates: int = parameter("number of independent repetitions", 5, minimum=1, maximum=MOST)
    tau: float = parameter("threshold of the soft rank (0 to 1)", 0.5, minimum=0, maximum=1)

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "initialisation"."""
        mine = ("random pixels", "initialisation", *orders(self.epochs))
        return super().purposes() + mine
