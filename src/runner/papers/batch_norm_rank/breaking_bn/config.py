"""The parameters of study `breaking_bn`."""

from dataclasses import dataclass
from typing import ClassVar

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
    """Paper B, figures 5, 7, 10, 13: convolutional networks with batch norm, broken and without."""

    study: ClassVar[str] = "breaking_bn"
    version: ClassVar[int] = 3  # rates are chosen on separate replicates, by the worst of them

    architecture: str = parameter("the network", "vgg19", choices=("vgg19", "resnet50"))
    multiplier: float = parameter(
        "of the network's numbers of channels", 0.125, above=0, maximum=100
    )
    methods: list[str] = parameter(
        "what to compare, one after the other",
        ["batch_norm", "batch_norm_asymmetric", "batch_norm_no_mean", "vanilla"],
        choices=BREAKING_METHODS,
    )
    data: str = parameter("the images", "digits", choices=LABELLED)
    image_size: int | None = parameter(
        "pixels of a side that images are resized to; null: their own", 16, minimum=1, maximum=1000
    )
    samples: int = parameter("N: inputs that ranks and gradients are measured on", 512, minimum=2)
    epochs: int = parameter("passes over the training images", 20, minimum=1)
    learning_rates: list[float] = parameter(
        "grid of rates of SGD, of which the fastest is judged; vanilla_100x takes 100 times"
        " vanilla's, vanilla_random_pixels vanilla's",
        [0.01, 0.03, 0.1],
        above=0,
        maximum=LARGEST_STEP,
    )
    selection_replicates: int = parameter(
        "replicates on which the rate is chosen; they are not used for results",
        2,
        minimum=1,
        maximum=MOST,
    )
    batch_size: int = parameter("images of one SGD step", 128, minimum=2, maximum=MOST)
    replicates: int = parameter("independent repetitions", 5, minimum=1, maximum=MOST)
    tau: float = parameter("threshold of the soft rank rank_tau", 0.5, minimum=0, maximum=1)

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the random streams."""
        mine = ("random pixels", "initialisation", *orders(self.epochs))
        return super().purposes() + mine
