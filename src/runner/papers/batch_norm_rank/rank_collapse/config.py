"""The parameters of study `rank_collapse`."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import parameter
from runner.papers.batch_norm_rank.mlp_config import TrainedMLPs


@dataclass(frozen=True)
class RankCollapse(TrainedMLPs):
    """Paper B, figures 1 and 2: rank at initialisation and training against depth."""

    study: ClassVar[str] = "rank_collapse"
    version: ClassVar[int] = 3  # rates are chosen on replicates of their own, by the worst of them

    activation: str = parameter("after each layer", "relu", choices=("relu", "linear"))
    normalizations: list[str] = parameter(
        "side by side; batch_no_mean divides by the root mean square alone",
        ["none", "batch"],
        choices=("none", "batch", "batch_no_mean"),
    )
    skip: float = parameter("gamma: weight of W H beside the skip connection", inf, above=0)
    init: str = parameter(
        "weights at the start",
        "pytorch",
        choices=("pytorch", "he", "unit", "asymmetric", "orthogonal"),
    )
    dtype: str = parameter("precision", "float32", choices=("float32", "float64"))
    train: bool = parameter("false: ranks at initialisation alone", True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train and self.data == "gaussian":
            raise InputError("data=gaussian has no labels to learn: add train=false")
