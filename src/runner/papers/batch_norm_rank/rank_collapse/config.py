"""Parameters of study `rank_collapse`."""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from runner.core.choices import ACTIVATIONS, INITIALIZATIONS, NORMALIZATIONS
from runner.core.errors import InputError
from runner.core.studies import parameter
from runner.papers.batch_norm_rank.mlp_config import TrainedMLPs

AUTHORS_RATES = "rates of the authors' code"
"""Value of `selected_on` with protocol=authors: these learning rates are not chosen by replicates.
"""


@dataclass(frozen=True)
class RankCollapse(TrainedMLPs):
    """Parameters of study `rank_collapse`, figures 1 and 2 of paper B.

    The study measures the rank of hidden layers at initialization, and training, by depth.
    """

    study: ClassVar[str] = "rank_collapse"
    named: ClassVar[tuple[str, ...]] = ("depth",)
    version: ClassVar[int] = 3  # learning rates are chosen by the worst of separate replicates

    protocol: str = parameter(
        "text: SGD at the best of several learning rates for each network, as the paper describes"
        " figure 1; authors: following the authors' code for figure 1 (or 2: data=gaussian)",
        "text",
        choices=("text", "authors"),
    )
    activation: str = parameter(
        "activation function after each layer", "relu", choices=ACTIVATIONS, own=True
    )
    normalizations: list[str] = parameter(
        "normalizations to compare; batch: over the batch; batch_no_mean: over the batch, without"
        " mean subtraction; layer, rms: over the features of each sample",
        ["none", "batch"],
        choices=NORMALIZATIONS,
    )
    skip: float = parameter(
        "residual weight γ in H + γ W H (inf: no skip connection)", inf, above=0
    )
    init: str = parameter(
        "initialization of the weights; gain: N(0, gain^2 / number of inputs) with the gain of"
        " the activation",
        "pytorch",
        choices=INITIALIZATIONS,
    )
    dtype: str = parameter("floating-point precision", "float32", choices=("float32", "float64"))
    train: bool = parameter(
        "whether the networks are trained (false: ranks are measured before training only)", True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train and self.data == "gaussian":
            raise InputError("data=gaussian has no labels to learn: add train=false")
        if self.protocol == "authors" and (reason := self._unlike_the_authors()):
            raise InputError(f"protocol=authors: {reason}. Use protocol=text")

    def _unlike_the_authors(self) -> str | None:
        """Return in words why protocol=authors does not allow these parameters, else None."""
        if (self.init, self.skip) != ("pytorch", inf):
            return "init and skip are those of their code"
        if not {*self.normalizations} <= {"none", "batch"}:
            return "its normalizations are none and batch, which subtracts the mean"
        if self.data == "gaussian":
            square = (self.dtype, self.samples) == ("float64", self.width)
            return None if square else "figure 2 has dtype=float64 and as many samples as units"
        if not self.train or (self.activation, self.dtype) != ("relu", "float32"):
            return "figure 1 trains ReLU networks on images, in float32"
        if self.optimizer != "sgd":
            return "its optimizers are SGD, and Adam with batch norm"
        if self.measure:
            return "it does not support measure=..."
        return None

    def grids(self) -> dict[str, list[Any]]:
        """Return the learning rates to choose from. With protocol=authors there is no choice."""
        return {} if self.protocol == "authors" else super().grids()

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "weights"."""
        parts = ("minibatches of", "training images scored in", "test images scored in")
        authors = [f"{part} epoch {e}" for part in parts for e in range(1, self.epochs + 1)]
        return (*super().purposes(), "data", "weights", *authors)
