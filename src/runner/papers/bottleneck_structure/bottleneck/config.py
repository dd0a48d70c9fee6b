"""Parameters of study `bottleneck`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter
from runner.papers.bottleneck_structure.purposes import initialization


@dataclass(frozen=True)
class Bottleneck(TrainingConfig):
    """Parameters of study `bottleneck`, figure 1 of paper D.

    The study measures norms and spectra by depth, of networks on a task of known rank.
    """

    study: ClassVar[str] = "bottleneck"
    named: ClassVar[tuple[str, ...]] = ("depths",)
    version: ClassVar[int] = 6  # two more columns: moved and negative

    depths: list[int] = parameter(
        "L: list of depths (2 or more); the networks of all depths are trained together",
        [6, 10, 18],
        minimum=2,
        maximum=MOST,
    )
    recipe: str = parameter(
        "training procedure; plain: Adam with lambda from the first step; annealed: Adam without"
        " weight decay for 200 steps, then up to 5 lambda until 60 % of the steps, then lambda;"
        " minimum: search for the best solution of each depth, from annealed networks",
        "annealed",
        choices=("plain", "annealed", "minimum"),
    )
    start_depths: list[int] | None = parameter(
        "depths at which recipe=minimum trains annealed networks; the search then continues to the"
        " other depths (null: all depths)",
        None,
        minimum=2,
        maximum=MOST,
    )
    starts: int = parameter(
        "number of initializations of recipe=minimum at each of start_depths",
        3,
        minimum=1,
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
    learning_rate: float | None = parameter(
        "learning rate of Adam (above 0; null: 0.005 for recipe=plain, 0.003 for annealed and"
        " minimum)",
        None,
        above=0,
        maximum=LARGEST_STEP,
    )
    points: int = parameter(
        "number of training inputs at which theorems are measured", 50, minimum=1
    )
    replicates: int = parameter(
        "number of tasks, each with separate data and initial weights", 3, minimum=1, maximum=MOST
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start_depths is not None and self.recipe != "minimum":
            raise InputError(f"start_depths is for recipe=minimum, not for recipe={self.recipe}")
        if strange := set(self.start_depths or []) - set(self.depths):
            raise InputError(f"start_depths={sorted(strange)} are not among the depths")

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "data"."""
        starts = [initialization(L, number) for L in self.depths for number in range(self.starts)]
        return ("data", *starts)
