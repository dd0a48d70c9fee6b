"""The columns of the tables of study `stability`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class StableNetwork(Row):
    """One row for each task, depth, rate and replicate: the network after gradient descent."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("task", "depth", "rate", "replicate")

    task: str = column("figure-1, scratch (figure 1's task from random networks) or example-20")
    depth: int = column("L, number of layers")
    rate: float = column("c of the learning rate c/L; 0: before gradient descent")
    replicate: int
    train_cost: float = column("(1/N) sum_i ||f(x_i) - y_i||^2; the zero network costs 1 or 0.3")
    ntk_trace: float = column("mean Tr Theta(x, x) over the training inputs")
    curvature: float = column(
        "2 ||Theta(X, X)||_op / N, Theta of weights and biases; median over the last 200 steps"
    )
    curvature_of_weights: float = column("as curvature, with Theta of the weights alone")
    constant: float = column("the bound of Theorem 7 divided by L, median over the training inputs")
    distance: float = column(
        "||K - K'|| / ||K'||, K of alpha_{L/2}(X), K' at the next smaller depth"
    )
