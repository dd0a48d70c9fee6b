"""The parameters of study `pretraining`, in the notation of Algorithm 1."""

from dataclasses import dataclass
from math import pi
from typing import ClassVar

from runner.core.studies import LARGEST_STEP, parameter
from runner.data import LABELLED
from runner.papers.batch_norm_rank.mlp_config import TrainedMLPs

METHODS = (
    "vanilla",
    "he",
    "unit_scale",
    "pretrained",
    "pretrained_end_to_end",
    "plain_ascent",
    "orthogonal",
    "whitened",
    "batch_norm",
    "batch_norm_asymmetric",
)


@dataclass(frozen=True)
class Pretraining(TrainedMLPs):
    """Paper B, figures 4, 6, 11, 12: raising the rank before training, against batch norm."""

    study: ClassVar[str] = "pretraining"
    version: ClassVar[int] = 3  # the ascent turns weights, and every network has unit scale

    data: str = parameter("the images", "digits", choices=LABELLED)
    batch_size: int = parameter("images of one SGD step", 64, minimum=2)
    learning_rates: list[float] = parameter(
        "grid of rates of SGD, of which the fastest is judged",
        [0.003, 0.01, 0.03, 0.1, 0.3],
        above=0,
        maximum=LARGEST_STEP,
    )
    methods: list[str] = parameter(
        "the networks to compare; plain_ascent is measured and not trained",
        list(METHODS),
        choices=METHODS,
    )
    pretraining_steps: list[int] = parameter(
        "M: minibatches of the pre-training; the largest for pretrained_end_to_end",
        [25, 75, 300],
        minimum=1,
    )
    gradient_steps: int = parameter("T: steps of ascent on each minibatch", 1, minimum=1)
    pretraining_batch_size: int = parameter("N of Algorithm 1", 128, minimum=2)
    angles: list[float] = parameter(
        "eta: by how much a step turns the parameters of a layer, in radians",
        [0.02, 0.05, 0.1, 0.2],
        above=0,
        maximum=pi / 2,
    )
    all_angles: bool = parameter(
        "false: of each method and M only the angle that raises r most", True
    )
    end_to_end_angles: list[float] = parameter(
        "the same of pretrained_end_to_end, which turns all layers at once",
        [0.001, 0.002, 0.005],
        above=0,
        maximum=pi / 2,
    )
    plain_rate: float = parameter("step of plain_ascent", 0.1, above=0, maximum=LARGEST_STEP)
