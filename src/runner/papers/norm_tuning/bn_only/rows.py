"""The columns of the tables of study `bn_only`."""

from dataclasses import dataclass
from math import nan
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class Approximation(Row):
    """A row of the table `metrics.csv`: the errors of one network on the test samples, in float64.

    A network is one method at one width in one replicate.
    """

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("method", "target_width", "width", "sparsity", "replicate")

    method: str
    target_width: int = column("d, width of the target")
    width: int = column("m, width of the network")
    sparsity: float = column("p, fraction of nonzero frozen weights")
    replicate: int
    test_mse: float = column("mean squared error on the test samples")
    relative_mse: float = column("test_mse / variance of g; 1: predicting the mean")
    max_abs_error: float = column("largest |f(x) - g(x)| over the test samples")
    condition_number: float = column(
        "condition number of the Khatri-Rao matrix, for constructions", nan
    )
    numerical_rank: float = column(
        "numerical rank of the Khatri-Rao matrix, for constructions", nan
    )
    source_mse: float = column("mean squared distance of a construction to the copied network", nan)
    float32_mse: float = column("source_mse, computed in float32", nan)
    smallest_scale: float = column("smallest |gamma1|; nan for `dense`", nan)
    largest_scale: float = column("largest |gamma1|; nan for `dense`", nan)
    largest_shift: float = column("largest |beta1| or |beta2|; nan for `dense`", nan)
    train_mse: float = column(
        "mean squared error at the end of the curve, for trained networks", nan
    )
    learning_rate: float = nan
    optimizer: str = "none"
    schedule: str = "none"
    statistics: str = "none"
    units_on: float = column(
        "fraction of active hidden ReLUs of the frozen network (128 samples)", nan
    )


@dataclass(frozen=True)
class CurvePoint(Row):
    """A row of the table `curves.csv`: the error of one network at one point of its training."""

    table: ClassVar[str] = "curves"
    keys: ClassVar[tuple[str, ...]] = ("method", "width", "replicate", "samples")

    method: str
    width: int = column("m, or d for `dense`")
    replicate: int
    samples: int = column("samples seen so far")
    mse: float = column(
        "mean squared error since the last point; in the first epoch on new samples"
    )
