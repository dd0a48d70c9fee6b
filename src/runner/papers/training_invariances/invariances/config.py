"""The parameters of paper C's study."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter

SMALLEST_DEPTH = {
    "linear": 2,
    "relu_then_linear": 4,
    "conv": 5,
    "conv_free": 6,
    "residual_identity": 5,
    "residual_diagonal": 5,
    "residual_free": 5,
    "mixed": 6,
    "random_graph": 3,
    "dense_graph": 3,
}
"""Layers without which an architecture would miss one of its kinds of junction; the last two are no
layers in a row, but any directed acyclic graph."""

MOST_STEPS = 1e15
"""From one measurement to the next; a float64 counts no further in whole numbers."""


@dataclass(frozen=True)
class Invariances(TrainingConfig):
    """Paper C: what gradient flow leaves invariant, and the low rank that follows."""

    study: ClassVar[str] = "invariances"
    version: ClassVar[int] = 3  # graphs; Eq. (13) with the factor 8

    architecture: str = parameter(
        "which kinds of layers, and in which order; random_graph, dense_graph: no layers, but a"
        " graph of (depth - 1) width hidden units",
        "relu_then_linear",
        choices=tuple(SMALLEST_DEPTH),
    )
    depth: int = parameter("L: layers; a residual block is one layer", 6, minimum=2, maximum=10_000)
    width: int = parameter("neurons of each hidden layer", 16, minimum=2)
    channels: int = parameter("channels of each convolution", 8, minimum=2)
    negative_slope: float = parameter(
        "slope of the nonlinear units below zero; 0: ReLU", 0.0, minimum=0, maximum=0.99
    )
    gain: float = parameter(
        "starting weights are N(0, gain^2 / fan in)", 1.0, above=0, maximum=LARGEST_FACTOR
    )
    active: float = parameter(
        "fraction of the nonlinear neurons that start with nonnegative weights, so that they are on"
        " for every nonnegative input",
        0.5,
        minimum=0,
        maximum=1,
    )
    twins: float = parameter(
        "fraction of the nonlinear neurons that start in pairs of nearly equal weights, on for the"
        " same inputs",
        0.25,
        minimum=0,
        maximum=1,
    )
    biases: bool = parameter("whether fully connected layers have biases", False)
    balanced: bool = parameter(
        "whether the linear layers at the end start with D = 0, as a chain of rank one", False
    )
    data: str = parameter(
        "gaussian: labels from a linear teacher; digits: two classes of handwritten digits",
        "gaussian",
        choices=("gaussian", "digits"),
    )
    classes: list[int] = parameter("the two digits, data=digits only", [0, 1], minimum=0, maximum=9)
    samples: int = parameter("n: training examples of each replicate", 32, minimum=2)
    loss: str = parameter(
        "of the margin y f(x)", "logistic", choices=("logistic", "exponential", "squared")
    )
    learning_rates: list[float] = parameter(
        "step sizes, all in one stack", [0.02, 0.01, 0.005], above=0, maximum=LARGEST_STEP
    )
    integrator: str = parameter(
        "euler: gradient descent; rk4: Runge-Kutta steps", "euler", choices=("euler", "rk4")
    )
    normalized_time: bool = parameter(
        "steps of the length of the rate along the gradient: the same path on a faster clock", False
    )
    time: float = parameter("T: time to train for; path length if normalized_time", 20.0, above=0)
    records: int = parameter("measurements, evenly spaced over the time", 20, minimum=1)
    replicates: int = parameter(
        "independent repetitions (data and initialisation)", 5, minimum=1, maximum=MOST
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.active + self.twins > 1:
            raise InputError(f"active={self.active:g} and twins={self.twins:g} are more than all")
        smallest = SMALLEST_DEPTH[self.architecture]
        if self.depth < smallest:
            raise InputError(
                f"depth={self.depth}: architecture={self.architecture} has at least"
                f" {smallest} layers"
            )
        if self.architecture.endswith("_graph"):
            layered = ("biases", "balanced", "negative_slope")
            self.refuse(layered, f"architecture={self.architecture}")
        for rate in self.learning_rates:
            steps = self.time / self.records / rate
            if steps > MOST_STEPS:
                raise InputError(
                    f"time={self.time:g}: at the rate {rate:g} that is {steps:.3g} steps from one"
                    f" measurement to the next: at most {MOST_STEPS:.0e} can be counted"
                )
            if round(steps) < 1 or abs(steps - round(steps)) > 1e-6 * steps:
                raise InputError(
                    f"learning_rates: {rate:g} does not divide time/records ="
                    f" {self.time / self.records:g}, the time between two measurements"
                )
        if self.normalized_time and self.loss == "squared":
            raise InputError(
                "normalized_time=true needs a loss without a minimum: loss=logistic or exponential"
            )
        if len(self.classes) != 2:
            raise InputError(f"classes={self.classes} must be two different digits")

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the random streams."""
        digits = [f"digit {digit}" for digit in range(10)]
        return ("examples", *digits, "graph", "initialisation")
