"""Parameters of study `stability`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, StudyConfig, parameter
from runner.papers.bottleneck_structure.purposes import initialization

SHALLOW = 18
"""Largest depth at which networks are trained from scratch."""
SOME = {"minimum": 1, "maximum": MOST}


@dataclass(frozen=True)
class Stability(StudyConfig):
    """Parameters of study `stability`, section 4 of paper D.

    The study asks at which networks gradient descent with the learning rate c/L can stay.
    """

    study: ClassVar[str] = "stability"
    named: ClassVar[tuple[str, ...]] = ("depths",)
    version: ClassVar[int] = 2  # curvature of all parameters, training from scratch

    depths: list[int] = parameter("L: list of depths", [6, 12, 18, 24, 30], minimum=4, maximum=MOST)
    rates: list[float] = parameter(
        "list of c; gradient descent has the learning rate c/L (above 0)",
        [0.02, 0.05, 0.1, 0.2, 0.4],
        above=0,
        maximum=LARGEST_STEP,
    )
    width: int = parameter("number of neurons in each hidden layer", 50, minimum=4)
    ridge: float = parameter(
        "lambda: strength of the weight decay", 1e-3, minimum=0, maximum=LARGEST_FACTOR
    )
    samples: int = parameter("N: number of training samples", 200, minimum=2)
    steps: int = parameter("number of steps of Adam on the task of figure 1", 6000, minimum=1)
    descent_steps: int = parameter("number of steps of gradient descent", 1000, minimum=1)
    scratch_depths: list[int] | None = parameter(
        "L of networks that gradient descent trains from scratch (null: all depths up to 18)",
        None,
        minimum=4,
        maximum=MOST,
    )
    scratch_rates: list[float] | None = parameter(
        "list of c for training from scratch (null: rates)", None, above=0, maximum=LARGEST_STEP
    )
    scratch_steps: int | None = parameter(
        "number of steps of training from scratch (null: ten times descent_steps)", None, minimum=1
    )
    replicates: int = parameter(
        "number of tasks, each with separate data and initial weights", 6, **SOME
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "points"."""
        depths = dict.fromkeys([*self.depths, *self.depths_from_scratch()])
        return ("data", "points", *map(initialization, depths))

    def depths_from_scratch(self) -> list[int]:
        """Return the depths of networks that gradient descent trains from scratch."""
        shallow = [L for L in self.depths if L <= SHALLOW] or [min(self.depths)]
        return shallow if self.scratch_depths is None else self.scratch_depths

    def rates_from_scratch(self) -> list[float]:
        """Return the numbers c of the learning rates c/L of training from scratch."""
        return self.rates if self.scratch_rates is None else self.scratch_rates

    def steps_from_scratch(self) -> int:
        """Return the number of steps of training from scratch."""
        return 10 * self.descent_steps if self.scratch_steps is None else self.scratch_steps
