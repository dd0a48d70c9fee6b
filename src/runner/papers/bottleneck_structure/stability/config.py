"""Parameters of study `stability`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, StudyConfig, parameter
from runner.papers.bottleneck_structure.purposes import initialization

SOME = {"minimum": 1, "maximum": MOST}


@dataclass(frozen=True)
class Stability(StudyConfig):
    """Parameters of study `stability`, section 4 of paper D.

    The study asks at which networks gradient descent with the learning rate c/L can stay.
    """

    study: ClassVar[str] = "stability"
    named: ClassVar[tuple[str, ...]] = ("depths",)

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
    replicates: int = parameter(
        "number of tasks, each with separate data and initial weights", 6, **SOME
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "points"."""
        return ("data", "points", *map(initialization, self.depths))
