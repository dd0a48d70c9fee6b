"""The parameters of paper D's studies, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.errors import InputError
from runner.studies import StudyConfig, parameter

PCA_LAYER, DISTANCE_LAYER = 6, 2
"""Layers of figure 2, panels (b) and (c), the paper's."""
PIXEL = (0.75, 0.0)
"""The fixed point x_0 of figure 2 (c), in coordinates of the plane (ours)."""


@dataclass(frozen=True)
class Bottleneck(StudyConfig):
    """Paper D, figure 1: parameter norm and spectra against depth, on a task of known rank."""

    study: ClassVar[str] = "bottleneck"

    depths: list[int] = parameter("L: all depths train in one stack", [6, 10, 18], minimum=2)
    recipe: str = parameter(
        "plain: ridge from the start; annealed: fit, then a stronger ridge, then lambda",
        "annealed",
        choices=("plain", "annealed"),
    )
    width: int = parameter("neurons of every hidden layer", 50, minimum=1)
    ridge: float = parameter("lambda", 1e-3, minimum=0)
    latent_rank: int = parameter(
        "k*: latent variables that the targets depend on", 2, minimum=1, maximum=8
    )
    samples: int = parameter("N: training samples; every step sees all", 200, minimum=2)
    test_samples: int = parameter("test samples", 500, minimum=1)
    steps: int = parameter("steps of Adam", 6000, minimum=1)
    learning_rate: float | None = parameter("null: the recipe's", None, above=0)
    points: int = parameter("training inputs that the theorems are measured at", 50, minimum=1)
    replicates: int = parameter("trials: own data, own initialisation", 3, minimum=1)

    def identity(self) -> dict:
        """As every study's; the order in which the depths are given does not matter."""
        identity = super().identity()
        if "depths" in identity:
            identity["depths"] = sorted(set(self.depths))
        return identity


@dataclass(frozen=True)
class Symmetry(StudyConfig):
    """Paper D, section 5 and figure 2: learning gradient-descent dynamics with a rotation
    symmetry.
    """

    study: ClassVar[str] = "symmetry"

    depth: int = parameter("L", 25, minimum=3)
    width: int = parameter("neurons of every hidden layer", 200, minimum=1)
    ridge: float = parameter("lambda", 2e-4, minimum=0)
    dimension: int = parameter("d: dimension of v", 20, minimum=3)
    horizon: int = parameter("T: gradient-descent steps to predict", 20, minimum=1)
    step_size: float = parameter("of the gradient descent on v", 0.02, above=0)
    noise: float = parameter("||E||, spectral norm of the noise matrix", 0.04, minimum=0)
    starts: int = parameter("training inputs v(0)", 10_000, minimum=1)
    batch_size: int = parameter("inputs of one step", 250, minimum=1)
    steps: int = parameter("steps of Adam", 5000, minimum=1)
    learning_rate: float = parameter("of Adam, before the cosine", 1.5e-3, above=0)
    probes: int = parameter(
        "fresh inputs that the representations are measured on", 1000, minimum=20
    )
    points: int = parameter("fresh inputs that the theorems are measured at", 50, minimum=1)
    resolution: int = parameter("pixels per side of the distance map", 61, minimum=3)
    replicates: int = parameter("trials: own w, E, data and initialisation", 3, minimum=1)


@dataclass(frozen=True)
class RankOne(StudyConfig):
    """Paper D, Theorem 10: the NTK of rank-1 interpolants of a rank-2 function for growing N."""

    study: ClassVar[str] = "rank_one"

    samples: list[int] = parameter("N: all sizes train in one stack", [4, 6, 8, 12, 16], minimum=2)
    depth: int = parameter("L", 12, minimum=6)
    width: int = parameter("neurons of every hidden layer outside the bottleneck", 50, minimum=1)
    ridge: float = parameter("lambda", 1e-4, minimum=0)
    steps: int = parameter("steps of Adam", 6000, minimum=1)
    learning_rate: float = parameter("of Adam, before the cosine", 3e-3, above=0)
    segment_points: int = parameter("inputs on the segment of two neighbours", 9, minimum=2)
    replicates: int = parameter("trials: own points, own initialisation", 8, minimum=1)


@dataclass(frozen=True)
class Example20(StudyConfig):
    """Paper D, Example 20: representations may diverge although the norm converges."""

    study: ClassVar[str] = "example20"

    depths: list[int] = parameter("L, even", [8, 32, 128, 512, 2048, 8192], minimum=4)
    exponents: list[float] = parameter(
        "g in epsilon = L^-g; the example asks for 1/2 < g < 1", [0.6, 0.7, 0.8, 0.9], above=0
    )
    grid: int = parameter("points per axis of [0, 1]^3 that f is compared on", 6, minimum=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        odd = [L for L in self.depths if L % 2]
        if odd:
            raise InputError(f"depths={self.depths}: Example 20 is for even L, {odd[0]} is odd")
