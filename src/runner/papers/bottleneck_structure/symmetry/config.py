"""Parameters of study `symmetry`, in the paper's notation."""

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter
from runner.papers.bottleneck_structure.purposes import STEPS_AT_ONCE, initialization

PCA_LAYER, DISTANCE_LAYER = 6, 2
"""Layers of panels (b) and (c) of figure 2, as in the paper."""
PIXEL = (0.75, 0.0)
"""Fixed point x_0 of panel (c), in coordinates of the plane (our choice)."""


@dataclass(frozen=True)
class Symmetry(TrainingConfig):
    """Parameters of study `symmetry`, figure 2 of paper D.

    The study trains networks to predict gradient-descent dynamics that have a symmetry.
    """

    study: ClassVar[str] = "symmetry"
    named: ClassVar[tuple[str, ...]] = ("depth",)
    version: ClassVar[int] = 6  # dead neurons are removed in training

    depth: int = parameter("L: depth of the network", 25, minimum=3, maximum=MOST)
    width: int = parameter("number of neurons in each hidden layer", 200, minimum=1)
    ridge: float = parameter(
        "lambda: weight decay at the end of training", 2e-4, minimum=0, maximum=LARGEST_FACTOR
    )
    recipe: str = parameter(
        "training procedure; constant: lambda from the first step; annealed: no weight decay for"
        " 200 steps, then up to 5 lambda until 60 % of the steps, then lambda",
        "annealed",
        choices=("constant", "annealed"),
    )
    dimension: int = parameter("d: dimension of the vector v", 20, minimum=3)
    horizon: int = parameter("T: number of gradient-descent steps to predict", 20, minimum=1)
    step_size: float = parameter(
        "step size of the gradient descent on v (above 0)", 0.02, above=0, maximum=LARGEST_FACTOR
    )
    noise: float = parameter(
        "||E||: spectral norm of the noise matrix (0: exact symmetry)",
        0.04,
        minimum=0,
        maximum=LARGEST_FACTOR,
    )
    starts: int = parameter("number of training inputs v(0)", 20_000, minimum=2)
    batch_size: int = parameter("number of inputs in one step", 250, minimum=1)
    steps: int = parameter("number of steps of Adam (betas 0.9 and 0.99)", 5000, minimum=1)
    learning_rate: float = parameter(
        "learning rate of Adam (above 0); it falls to 0 as a cosine",
        1.5e-3,
        above=0,
        maximum=LARGEST_STEP,
    )
    probes: int = parameter(
        "number of new inputs on which representations are measured", 1000, minimum=20
    )
    points: int = parameter("number of new inputs at which theorems are measured", 50, minimum=1)
    resolution: int = parameter("number of pixels per side of the distance map", 61, minimum=3)
    replicates: int = parameter(
        "number of networks, each with separate w, E, data and initial weights",
        3,
        minimum=1,
        maximum=MOST,
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "orbits"."""
        mine = ("data", "probes", "orbits", "paths", "plane", initialization(self.depth))
        return (*mine, *(f"order/{block}" for block in range(ceil(self.steps / STEPS_AT_ONCE))))
