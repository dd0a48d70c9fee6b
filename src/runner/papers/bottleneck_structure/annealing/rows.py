"""The columns of the table of study `annealing`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class AnnealedNetwork(Row):
    """One row for each depth and replicate: measures of the network at the end of training."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("recipe", "gain", "depth", "replicate")

    recipe: str = column("weight decay: annealed or constant")
    gain: float = column("gain of the initial weights")
    depth: int = column("L, number of layers")
    replicate: int
    parameter_norm: float = column("squared norm of the parameters, ||theta||^2")
    train_cost: float = column("training cost C; the zero network costs 1")
    test_cost: float = column("test cost C")
    loss: float = column("loss C + lambda ||theta||^2")
    rank: int = column("number of singular values of W_{L/2} above 0.1")
