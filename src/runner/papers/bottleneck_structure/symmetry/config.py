"""The parameters of study `symmetry`, in the paper's notation."""

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter
from runner.papers.bottleneck_structure.purposes import STEPS_AT_ONCE, initialization

PCA_LAYER, DISTANCE_LAYER = 6, 2
"""Layers of figure 2, panels (b) and (c), the paper's."""
PIXEL = (0.75, 0.0)
"""The fixed point x_0 of figure 2 (c), in coordinates of the plane (ours)."""


@dataclass(frozen=True)
class Symmetry(TrainingConfig):
    """Paper D, section 5 and figure 2: learning gradient-descent dynamics with a rotation
    symmetry.
    """

    study: ClassVar[str] = "symmetry"
    version: ClassVar[int] = 5  # trained by Adam alone, as long as it takes

    depth: int = parameter("L", 25, minimum=3, maximum=MOST)
    width: int = parameter("neurons of every hidden layer", 200, minimum=1)
    ridge: float = parameter("lambda", 2e-4, minimum=0, maximum=LARGEST_FACTOR)
    dimension: int = parameter("d: dimension of v", 20, minimum=3)
    horizon: int = parameter("T: gradient-descent steps to predict", 20, minimum=1)
    step_size: float = parameter(
        "of the gradient descent on v", 0.02, above=0, maximum=LARGEST_FACTOR
    )
    noise: float = parameter(
        "||E||, spectral norm of the noise matrix", 0.04, minimum=0, maximum=LARGEST_FACTOR
    )
    starts: int = parameter("training inputs v(0)", 20_000, minimum=2)
    batch_size: int = parameter("inputs of one step", 250, minimum=1)
    steps: int = parameter("steps of Adam", 5000, minimum=1)
    learning_rate: float = parameter(
        "of Adam, before the cosine", 1.5e-3, above=0, maximum=LARGEST_STEP
    )
    probes: int = parameter(
        "fresh inputs that the representations are measured on", 1000, minimum=20
    )
    points: int = parameter("fresh inputs that the theorems are measured at", 50, minimum=1)
    resolution: int = parameter("pixels per side of the distance map", 61, minimum=3)
    replicates: int = parameter(
        "trials: own w, E, data and initialisation", 3, minimum=1, maximum=MOST
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the random streams."""
        mine = ("data", "probes", "orbits", "paths", "plane", initialization(self.depth))
        return (*mine, *(f"order/{block}" for block in range(ceil(self.steps / STEPS_AT_ONCE))))
