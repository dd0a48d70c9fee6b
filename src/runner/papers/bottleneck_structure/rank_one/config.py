"""The parameters of study `rank_one`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, TrainingConfig, parameter


@dataclass(frozen=True)
class RankOne(TrainingConfig):
    """Paper D, Theorem 10: the NTK of rank-1 interpolants of a rank-2 function for growing N."""

    study: ClassVar[str] = "rank_one"
    version: ClassVar[int] = 2  # every point weighs the same

    samples: list[int] = parameter("N: all sizes train in one stack", [4, 6, 8, 12, 24], minimum=2)
    depth: int = parameter("L", 12, minimum=6, maximum=MOST)
    width: int = parameter("neurons of every hidden layer outside the bottleneck", 50, minimum=1)
    ridge: float = parameter("lambda", 1e-4, minimum=0, maximum=LARGEST_FACTOR)
    steps: int = parameter("steps of Adam", 6000, minimum=1)
    learning_rate: float = parameter(
        "of Adam, before the cosine", 3e-3, above=0, maximum=LARGEST_STEP
    )
    segment_points: int = parameter("inputs on the segment of two neighbours", 9, minimum=2)
    replicates: int = parameter(
        "trials: own points, own initialisation", 8, minimum=1, maximum=MOST
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the random streams."""
        return tuple(f"{name}/{N}" for N in self.samples for name in ("inputs", "initialisation"))
