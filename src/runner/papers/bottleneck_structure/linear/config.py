"""Parameters of study `linear`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import LARGEST_FACTOR, MOST, TrainingConfig, parameter
from runner.papers.bottleneck_structure.purposes import initialization


@dataclass(frozen=True)
class Linear(TrainingConfig):
    """Parameters of study `linear`, section 3 of paper D.

    The study compares the squared norm of deep linear networks with its expansion in 1/L.
    """

    study: ClassVar[str] = "linear"
    named: ClassVar[tuple[str, ...]] = ("depths",)

    depths: list[int] = parameter(
        "L: list of depths", [4, 6, 8, 12, 16, 24, 32], minimum=2, maximum=MOST
    )
    width: int = parameter(
        "n: number of inputs, outputs and neurons in each hidden layer", 4, minimum=1
    )
    rank: int = parameter("k: rank of the matrix to learn (at most width)", 2, minimum=1)
    ridges: list[float] = parameter(
        "lambda: list of strengths of the weight decay; training uses one after the other",
        [1e-1, 1e-2, 1e-3],
        above=0,
        maximum=LARGEST_FACTOR,
    )
    iterations: int = parameter(
        "largest number of iterations of L-BFGS at each lambda", 3000, minimum=1
    )
    replicates: int = parameter(
        "number of tasks, each with a separate matrix and initial weights",
        10,
        minimum=1,
        maximum=MOST,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank > self.width:
            raise InputError(f"rank={self.rank} is above width={self.width}")

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "target"."""
        return ("target", *map(initialization, self.depths))
