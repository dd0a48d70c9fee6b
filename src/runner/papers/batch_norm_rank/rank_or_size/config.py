"""Parameters of study `rank_or_size`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.choices import Datasets
from runner.core.errors import InputError
from runner.core.studies import LARGEST_STEP, MOST, parameter
from runner.data import LABELLED
from runner.papers.batch_norm_rank.mlp_config import TrainedMLPs

OF_RANKS = ("product", "copied")
OF_FLIPS = ("flipped",)
OF_SIZES = ("sized", "sized_layer_rates")
"""Families with a network for each value of `ranks`, of `flips` and of `sizes`."""

FAMILIES = (
    "signed",
    *OF_RANKS,
    *OF_FLIPS,
    *OF_SIZES,
    "even",
    "unscaled",
    "unscaled_layer_rates",
    "default_biases",
    "default_biases_unit",
    "pixels_255",
    "batch_norm",
    "pretrained",
    "pretrained_small",
    "size_of_pretrained",
)

OWN_RATES = ("sized_layer_rates", "unscaled_layer_rates", "pixels_255")
"""Families whose layers have learning rates of their own."""


@dataclass(frozen=True)
class RankOrSize(TrainedMLPs):
    """Parameters of study `rank_or_size`, a control of paper B's figure 6.

    Deep plain networks whose rank, directions or size are set one at a time before training.
    """

    study: ClassVar[str] = "rank_or_size"
    named: ClassVar[tuple[str, ...]] = ("families",)

    depth: int = parameter("L: number of hidden layers", 30, minimum=2, maximum=MOST)
    data: str = parameter(
        "dataset, or your own images (data=stripes.npz)", "digits", choices=Datasets(LABELLED)
    )
    families: list[str] = parameter("initializations to compare", ["signed"], choices=FAMILIES)
    ranks: list[int] = parameter(
        "k: list of ranks of the last hidden layer; the width, which is full rank, is added, and"
        " larger numbers are left out",
        [1, 2, 4, 8, 16, 32],
        minimum=1,
    )
    flips: list[float] = parameter(
        "list of fractions of the last hidden layer's weights whose sign is flipped (0 to 1)",
        [0.0, 0.1, 0.25, 0.5],
        minimum=0,
        maximum=1,
    )
    sizes: list[float] = parameter(
        "list of root mean squares of every hidden layer",
        [0.1, 0.01, 0.001, 0.0001],
        above=0,
        maximum=1e6,
    )
    pretraining_steps: int = parameter(
        "number of steps of pre-training on each layer, as in the authors' code for figure 6",
        75,
        minimum=1,
    )
    pretraining_step: float = parameter(
        "step size of pre-training", 0.1, above=0, maximum=LARGEST_STEP
    )
    batch_size: int = parameter("number of images of one SGD step", 32, minimum=2)
    epochs: int = parameter("passes over the training images", 15, minimum=1)
    learning_rates: list[float] = parameter(
        "learning rates of SGD to try; each network is judged at its best one. With learning rates"
        " for each layer: the learning rate at size 1",
        [0.003, 0.01, 0.03],
        above=0,
        maximum=LARGEST_STEP,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        own = [family for family in self.families if family in OWN_RATES]
        if own and self.optimizer != "sgd":
            raise InputError(
                f"families=[{','.join(own)}] needs optimizer=sgd, not {self.optimizer}"
            )

    def levels(self, family: str) -> list[float]:
        """Return the ranks, fractions or sizes of a family; [0] if it has only one network."""
        if family in OF_RANKS:
            return [float(k) for k in self.ranks if k < self.width] + [float(self.width)]
        by_family = dict.fromkeys(OF_FLIPS, self.flips) | dict.fromkeys(OF_SIZES, self.sizes)
        return by_family.get(family, [0.0])

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "product"."""
        return (*super().purposes(), "glorot", "product", "copied", "flipped", "pretraining")
