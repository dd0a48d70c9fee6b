"""Parameters of study `rank_gradients`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.choices import ACTIVATIONS, INITIALIZATIONS, NORMALIZATIONS
from runner.core.studies import MOST, StudyConfig, parameter


@dataclass(frozen=True)
class RankGradients(StudyConfig):
    """Parameters of study `rank_gradients`: gradients and rank of random networks."""

    study: ClassVar[str] = "rank_gradients"
    named: ClassVar[tuple[str, ...]] = ("depths",)

    depths: list[int] = parameter(
        "L: list of numbers of hidden layers", [5, 10, 20, 40, 100], minimum=2, maximum=MOST
    )
    widths: list[int] = parameter("d: list of widths of the networks", [64], minimum=2)
    samples: int = parameter("N: batch size, the number of Gaussian inputs", 64, minimum=2)
    normalizations: list[str] = parameter(
        "normalizations before the activation, to compare",
        ["none", "batch"],
        choices=NORMALIZATIONS,
    )
    activation: str = parameter(
        "activation function after each layer", "relu", choices=ACTIVATIONS, own=True
    )
    init: str = parameter(
        "initialization of the weights; gain: N(0, gain^2 / number of inputs) with the gain of"
        " the activation",
        "gain",
        choices=INITIALIZATIONS,
    )
    replicates: int = parameter(
        "number of independent networks, inputs and labels", 8, minimum=1, maximum=MOST
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "weights L=5 d=64"."""
        points = [f"L={depth} d={width}" for depth in self.depths for width in self.widths]
        return tuple(f"{part} {point}" for part in ("data", "weights") for point in points)
