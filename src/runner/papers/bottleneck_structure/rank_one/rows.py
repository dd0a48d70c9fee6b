"""The columns of the tables of study `rank_one`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class TrainedNetwork(Row):
    """One row for each N and replicate: measures of the network at the end of training."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("samples", "replicate", "depth")

    samples: int = column("N, number of points")
    replicate: int
    depth: int = column("L, number of layers")
    parameter_norm: float = column("squared norm of the parameters, ||theta||^2")
    excess: float = column("c_1 = ||theta||^2 - L")
    train_cost: float = column("(1/N) sum_i ||f(x_i) - y_i||^2; the zero network costs about 1")
    ntk_trace: float = column("largest Tr Theta(x, x) on the segments between neighbors")
    jacobian: float = column("largest ||J f(x)||_op on these segments")
