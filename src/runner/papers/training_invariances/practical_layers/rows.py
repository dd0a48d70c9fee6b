"""The columns of the tables of study `practical_layers`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class InvariantDrift(Row):
    """A row of the table `metrics.csv`: rate and drift of a quantity D in one trained network.

    D is a matrix. There is a row for each network, replicate, learning rate, quantity D, and part
    of D.
    """

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("network", "replicate", "learning_rate", "quantity", "part")
    in_every_replicate: ClassVar[bool] = False  # activation patterns decide which pairs are equal

    network: str
    replicate: int
    learning_rate: float
    loss: float = column("training loss after training, in nats")
    quantity: str = column("D: a sum of Gram matrices of rows or columns of parameters")
    part: str = column("part of D: diagonal, heads (attention: pairs of the same head) or all")
    rate: float = column("exact rate of change of this part, relative to the largest possible rate")
    initial: float = column("norm of this part before training")
    drift: float = column(
        "norm of the change during training; with decay from D(0) exp(-2 lambda T)"
    )
