"""Parameters of study `annealing`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter
from runner.papers.bottleneck_structure.purposes import initialization


@dataclass(frozen=True)
class Annealing(TrainingConfig):
    """Parameters of study `annealing`: does annealing or do the initial weights save deep networks?

    The two training procedures of paper D's figure 1 differ in weight decay, initial weights and
    learning rate. Here each of them has both kinds of weight decay.
    """

    study: ClassVar[str] = "annealing"
    named: ClassVar[tuple[str, ...]] = ("recipe", "gain")

    recipe: str = parameter(
        "weight decay; constant: lambda from the first step; annealed: none for 200 steps, then up"
        " to 5 lambda until 60 % of the steps, then lambda",
        "annealed",
        choices=("annealed", "constant"),
    )
    gain: float = parameter(
        "gain of the initial weights, N(0, gain^2 / fan_in); biases are 0",
        1.2,
        above=0,
        maximum=LARGEST_FACTOR,
    )
    learning_rate: float = parameter(
        "learning rate of Adam (above 0); it falls to 0 as a cosine",
        3e-3,
        above=0,
        maximum=LARGEST_STEP,
    )
    depths: list[int] = parameter(
        "L: list of depths (2 or more); the networks of all depths are trained together",
        [6, 10, 14, 18, 26],
        minimum=2,
        maximum=MOST,
    )
    width: int = parameter("number of neurons in each hidden layer", 50, minimum=1)
    ridge: float = parameter(
        "lambda: strength of the weight decay", 1e-3, minimum=0, maximum=LARGEST_FACTOR
    )
    latent_rank: int = parameter(
        "k*: rank of the task, the number of hidden variables that the targets depend on",
        2,
        minimum=1,
        maximum=8,
    )
    samples: int = parameter(
        "N: number of training samples; each step uses all of them", 200, minimum=2
    )
    test_samples: int = parameter("number of test samples", 500, minimum=1)
    steps: int = parameter("number of steps of Adam (betas 0.9 and 0.99)", 6000, minimum=1)
    replicates: int = parameter(
        "number of tasks, each with separate data and initial weights", 8, minimum=1, maximum=MOST
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "data"."""
        return ("data", *map(initialization, self.depths))
