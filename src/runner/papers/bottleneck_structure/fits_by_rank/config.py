"""Parameters of study `fits_by_rank`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter


@dataclass(frozen=True)
class FitsByRank(TrainingConfig):
    """Parameters of study `fits_by_rank`: which ranks fit the values of a function of rank 2."""

    study: ClassVar[str] = "fits_by_rank"
    named: ClassVar[tuple[str, ...]] = ("ranks",)

    ranks: list[int] = parameter(
        "list of numbers of neurons in each layer of the middle third", [1, 2], minimum=1
    )
    samples: list[int] = parameter(
        "N: list of numbers of training points (2 or more); the networks for all values of N are"
        " trained together",
        [4, 6, 8, 12, 24],
        minimum=2,
    )
    depth: int = parameter("L: depth of the network", 12, minimum=6, maximum=MOST)
    width: int = parameter("number of neurons in each other hidden layer", 50, minimum=2)
    ridge: float = parameter(
        "lambda: strength of the weight decay", 1e-4, minimum=0, maximum=LARGEST_FACTOR
    )
    steps: int = parameter("number of steps of Adam (betas 0.9 and 0.99)", 6000, minimum=1)
    learning_rate: float = parameter(
        "learning rate of Adam (above 0); it falls to 0 as a cosine",
        3e-3,
        above=0,
        maximum=LARGEST_STEP,
    )
    replicates: int = parameter(
        "number of networks for each N and rank; each N and replicate has separate points",
        13,
        minimum=1,
        maximum=MOST,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if max(self.ranks) > self.width:
            raise InputError(
                f"ranks={self.ranks}: a network of width {self.width} has no larger rank"
            )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "inputs/4"."""
        return tuple(f"{name}/{N}" for N in self.samples for name in ("inputs", "initialisation"))
