"""Parameters of study `vgg_size`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.choices import Datasets
from runner.core.streams import orders
from runner.core.studies import LARGEST_STEP, MOST, parameter
from runner.data import LABELLED
from runner.papers.batch_norm_rank.images_config import OnImages

METHODS = ("vanilla", "he", "unit_scale")


@dataclass(frozen=True)
class VGGSize(OnImages):
    """Parameters of study `vgg_size`, a control of paper B's figure 10.

    VGG-19 without batch norm, from initializations that differ in the size of activations.
    """

    study: ClassVar[str] = "vgg_size"
    named: ClassVar[tuple[str, ...]] = ("methods",)

    methods: list[str] = parameter("initializations to compare", list(METHODS), choices=METHODS)
    multiplier: float = parameter(
        "factor by which all numbers of channels are multiplied (1: the published network)",
        0.125,
        above=0,
        maximum=100,
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
    samples: int = parameter("N: number of images on which layers are measured", 512, minimum=2)
    epochs: int = parameter("number of passes over the training images", 20, minimum=1)
    learning_rates: list[float] = parameter(
        "learning rates of SGD to try; each network is judged at its best one",
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

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "initialisation"."""
        return (*super().purposes(), "initialisation", *orders(self.epochs))
