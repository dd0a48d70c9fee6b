"""The parameters of study `bottleneck`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter
from runner.papers.bottleneck_structure.purposes import initialization


@dataclass(frozen=True)
class Bottleneck(TrainingConfig):
    """Paper D, figure 1: parameter norm and spectra against depth, on a task of known rank."""

    study: ClassVar[str] = "bottleneck"
    version: ClassVar[int] = 4  # parallel neurons become one

    depths: list[int] = parameter(
        "L: all depths train in one stack", [6, 10, 18], minimum=2, maximum=MOST
    )
    recipe: str = parameter(
        "plain: ridge from the start; annealed: fit, then a stronger ridge, then lambda; minimum:"
        " the lowest loss of each depth, from annealed networks",
        "annealed",
        choices=("plain", "annealed", "minimum"),
    )
    start_depths: list[int] | None = parameter(
        "depths at which recipe=minimum starts from annealed networks, the others from their"
        " neighbours; null: all",
        None,
        minimum=2,
        maximum=MOST,
    )
    starts: int = parameter(
        "independent starts of recipe=minimum at each of them", 3, minimum=1, maximum=MOST
    )
    width: int = parameter("neurons of every hidden layer", 50, minimum=1)
    ridge: float = parameter("lambda", 1e-3, minimum=0, maximum=LARGEST_FACTOR)
    latent_rank: int = parameter(
        "k*: latent variables that the targets depend on", 2, minimum=1, maximum=8
    )
    samples: int = parameter("N: training samples; every step sees all", 200, minimum=2)
    test_samples: int = parameter("test samples", 500, minimum=1)
    steps: int = parameter("steps of Adam", 6000, minimum=1)
    learning_rate: float | None = parameter(
        "null: the recipe's", None, above=0, maximum=LARGEST_STEP
    )
    points: int = parameter("training inputs that the theorems are measured at", 50, minimum=1)
    replicates: int = parameter("trials: own data, own initialisation", 3, minimum=1, maximum=MOST)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start_depths is not None and self.recipe != "minimum":
            raise InputError(f"start_depths is for recipe=minimum, not for recipe={self.recipe}")
        if strange := set(self.start_depths or []) - set(self.depths):
            raise InputError(f"start_depths={sorted(strange)} are not among the depths")

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the random streams."""
        starts = [initialization(L, number) for L in self.depths for number in range(self.starts)]
        return ("data", *starts)
