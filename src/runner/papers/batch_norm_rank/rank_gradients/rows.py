"""The columns of the tables of study `rank_gradients`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class Gradients(Row):
    """A row of the table `metrics.csv`: gradient norms and ranks of a network at initialization.

    There is one row for each normalization, width, depth and replicate.
    """

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("normalization", "width", "depth", "replicate")

    normalization: str
    width: int = column("d, number of units of each hidden layer")
    depth: int = column("L, number of hidden layers")
    replicate: int
    first_gradient: float = column(
        "Frobenius norm of the gradient by the weights of hidden layer 1"
    )
    last_gradient: float = column("Frobenius norm of the gradient by the weights of hidden layer L")
    matrix_rank: float = column(
        "number of singular values of the last hidden layer above sigma_max d eps"
    )
    rank_bound: float = column("r of the last hidden layer, lower bound of the rank, Eq. (4)")
