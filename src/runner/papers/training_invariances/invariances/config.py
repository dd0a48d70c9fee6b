"""Parameters of study `invariances`."""

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
"""Smallest depth at which an architecture has all its kinds of junctions. The last two
architectures are directed acyclic graphs.
"""

MOST_STEPS = 1e15
"""Largest number of steps between two measurements that a float64 can count."""


@dataclass(frozen=True)
class Invariances(TrainingConfig):
    """Parameters of study `invariances`: what gradient flow conserves, and the low rank."""

    study: ClassVar[str] = "invariances"
    named: ClassVar[tuple[str, ...]] = ("architecture", "depth")
    version: ClassVar[int] = 3  # graphs; Eq. (13) with the factor 8

    architecture: str = parameter(
        "kinds of layers and their order; random_graph and dense_graph: a graph of (depth - 1) ×"
        " width hidden units instead of layers",
        "relu_then_linear",
        choices=tuple(SMALLEST_DEPTH),
    )
    depth: int = parameter(
        "L: number of layers; a residual block is one layer", 6, minimum=2, maximum=10_000
    )
    width: int = parameter("number of neurons in each hidden layer", 16, minimum=2)
    channels: int = parameter("number of channels of each convolution", 8, minimum=2)
    negative_slope: float = parameter(
        "slope of the nonlinear units for negative inputs; 0: ReLU", 0.0, minimum=0, maximum=0.99
    )
    gain: float = parameter(
        "size of the initial weights: N(0, gain² / number of inputs)",
        1.0,
        above=0,
        maximum=LARGEST_FACTOR,
    )
    active: float = parameter(
        "fraction of the nonlinear neurons with nonnegative initial weights, so that they are"
        " active for every nonnegative input",
        0.5,
        minimum=0,
        maximum=1,
    )
    twins: float = parameter(
        "fraction of the nonlinear neurons that form pairs: both neurons of a pair have nearly"
        " equal initial weights, so that the same inputs activate both",
        0.25,
        minimum=0,
        maximum=1,
    )
    biases: bool = parameter("whether fully connected layers have biases", False)
    balanced: bool = parameter(
        "whether the linear layers at the end begin with D = 0, all of rank one", False
    )
    data: str = parameter(
        "gaussian: normal inputs, labels from a linear teacher; digits: two classes of images",
        "gaussian",
        choices=("gaussian", "digits"),
    )
    classes: list[int] = parameter(
        "the two digits (data=digits only)", [0, 1], minimum=0, maximum=9
    )
    samples: int = parameter("n: number of training examples of each network", 32, minimum=2)
    loss: str = parameter(
        "loss as a function of the margin y f(x)",
        "logistic",
        choices=("logistic", "exponential", "squared"),
    )
    learning_rates: list[float] = parameter(
        "learning rates (with normalized_time=true: step lengths); a separate network is trained"
        " at each",
        [0.02, 0.01, 0.005],
        above=0,
        maximum=LARGEST_STEP,
    )
    integrator: str = parameter(
        "euler: gradient descent; rk4: Runge–Kutta steps of fourth order",
        "euler",
        choices=("euler", "rk4"),
    )
    normalized_time: bool = parameter(
        "whether all steps have equal length, so that the path is followed at unit speed", False
    )
    time: float = parameter(
        "T: time of gradient flow; with normalized_time the length of the path", 20.0, above=0
    )
    records: int = parameter("number of measurements, evenly spaced in time", 20, minimum=1)
    replicates: int = parameter(
        "number of independent repetitions (data and initial weights)", 5, minimum=1, maximum=MOST
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.active + self.twins > 1:
            raise InputError(
                f"active={self.active:g} and twins={self.twins:g}: their sum is above 1"
            )
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
                    f"time={self.time:g}: the learning rate {rate:g} needs {steps:.3g} steps from"
                    f" one measurement to the next, more than {MOST_STEPS:.0e}"
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
        """Return the names of the run's random streams, one for each kind of random numbers."""
        digits = [f"digit {digit}" for digit in range(10)]
        return ("examples", *digits, "graph", "initialisation")
