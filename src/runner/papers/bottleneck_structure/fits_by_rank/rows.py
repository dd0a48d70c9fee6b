"""The columns of the table of study `fits_by_rank`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class NarrowNetwork(Row):
    """One row for each rank, N and replicate: measures of the network at the end of training."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("rank", "samples", "replicate")

    rank: int = column("number of neurons in each layer of the middle third")
    samples: int = column("N, number of points")
    replicate: int
    parameter_norm: float = column("squared norm of the parameters, ||theta||^2")
    error: float = column("sum_i ||f(x_i) - y_i||^2; the zero network has about N")
