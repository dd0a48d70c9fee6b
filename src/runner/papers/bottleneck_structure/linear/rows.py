"""The columns of the tables of study `linear`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column
from runner.papers.bottleneck_structure.rows import TheoremCheck as TheoremCheck


@dataclass(frozen=True)
class LinearNetwork(Row):
    """One row for each depth and replicate: measures of one deep linear network after training."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("depth", "replicate")

    depth: int = column("L, number of layers")
    replicate: int
    parameter_norm: float = column("squared norm of the parameters, ||theta||^2")
    representation_cost: float = column("representation cost R(A; L)")
    rank: int = column("k: number of singular values of A above 0.1")
    first_correction: float = column("2 log |A|_+")
    second_correction: float = column("||log_+ A^T A||^2 / 2")
    train_cost: float = column("||A - T||^2")
