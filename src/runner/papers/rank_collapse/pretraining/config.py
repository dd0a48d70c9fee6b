"""The parameters of study `pretraining`, in the notation of Algorithm 1."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import parameter
from runner.data import LABELLED
from runner.papers.rank_collapse.mlp_config import TrainedMLPs


@dataclass(frozen=True)
class Pretraining(TrainedMLPs):
    """Paper B, figures 4, 6, 11, 12: raising the rank before training, against batch norm."""

    study: ClassVar[str] = "pretraining"
    version: ClassVar[int] = 2  # rates are chosen on replicates of their own

    data: str = parameter("the images", "digits", choices=LABELLED)
    epochs: int = parameter("passes over the training images", 30, minimum=1)
    batch_size: int = parameter("images of one SGD step", 64, minimum=2)
    methods: list[str] = parameter(
        "what to compare",
        ["vanilla", "pretrained", "batch_norm", "batch_norm_asymmetric"],
        choices=("vanilla", "pretrained", "batch_norm", "batch_norm_asymmetric"),
    )
    pretraining_steps: list[int] = parameter(
        "M: minibatches of the pre-training", [25, 75], minimum=1
    )
    gradient_steps: int = parameter("T: steps of ascent on each minibatch", 1, minimum=1)
    pretraining_batch_size: int = parameter("N of Algorithm 1", 128, minimum=2)
    pretraining_rate: float = parameter("step of the ascent on r", 0.07, above=0)
    layer_wise: bool = parameter("false: ascent on r(H_L) over all weights at once", True)
    rescale: list[bool] = parameter(
        "whether networks without batch norm start with every layer brought to unit scale;"
        " without pre-training, that is the control",
        [False, True],
    )
