"""The columns of the table of study `norm_active`."""

from dataclasses import dataclass
from math import nan
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class Imitation(Row):
    """A row of the table `networks.csv`: the error of one trained network on the test samples.

    Networks that choose learning rates have a row for each learning rate.
    """

    table: ClassVar[str] = "networks"
    keys: ClassVar[tuple[str, ...]] = (
        "arm",
        "replicate",
        "learning_rate",
        "shift_rate",
        "chosen_by",
    )

    arm: str = column("what is trained, a value of `arms`")
    width: int = column("m, hidden units of the frozen network; d^2 without it")
    replicate: int
    judged: bool = column("whether the replicate is judged (false: it only chooses learning rates)")
    learning_rate: float
    shift_rate: float = column("learning rate of the shifts; 0: fixed")
    chosen_by: str = column(
        "the arm whose choosing networks chose these rates; empty if not judged"
    )
    relative_mse: float = column(
        "mean squared error / variance of the target; 1: predicting the mean"
    )
    condition_number: float = column(
        "condition number of the map from trained parameters to W", nan
    )
    units_on: float = column("fraction of hidden units that are active after training, if any", nan)
