"""Parameters of study `rank_one`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter


@dataclass(frozen=True)
class RankOne(TrainingConfig):
    """Parameters of study `rank_one`, Theorem 10 of paper D.

    The study measures tangent kernels of networks of rank 1 that fit values of a function of rank
    2.
    """

    study: ClassVar[str] = "rank_one"
    named: ClassVar[tuple[str, ...]] = ("samples",)
    version: ClassVar[int] = 2  # all points have equal weight

    samples: list[int] = parameter(
        "N: list of numbers of training points (2 or more); the networks for all values of N are"
        " trained together",
        [4, 6, 8, 12, 24],
        minimum=2,
    )
    depth: int = parameter("L: depth of the network", 12, minimum=6, maximum=MOST)
    width: int = parameter(
        "number of neurons in each hidden layer outside the bottleneck", 50, minimum=1
    )
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
    segment_points: int = parameter(
        "number of inputs on the segment between two neighboring points", 9, minimum=2
    )
    replicates: int = parameter(
        "number of networks for each N, each with separate points and initial weights",
        8,
        minimum=1,
        maximum=MOST,
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "inputs/4"."""
        return tuple(f"{name}/{N}" for N in self.samples for name in ("inputs", "initialisation"))
