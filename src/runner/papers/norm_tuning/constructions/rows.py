"""The columns of the tables of study `constructions`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class Reconstruction(Row):
    """A row of the table `metrics.csv`: a constructed network and its distance from the target."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = (
        "theorem", "target", "target_width", "width", "block", "rank", "depth", "sparsity",
        "dtype", "replicate",
    )  # fmt: skip

    theorem: str
    target: str
    target_width: int = column("d, width of the target")
    width: int = column("most hidden units in a layer of the reconstruction: m, d r or d k")
    block: int = column("k of Theorem 2; 0 for other theorems")
    rank: int = column("r of Corollary 1; 0 for other theorems")
    depth: int = column("l, number of layers of the target")
    sparsity: float = column("p, the fraction of frozen weights that are not zero")
    dtype: str
    replicate: int
    max_abs_error: float = column("largest |f(x) - g(x)| over all test inputs and outputs")
    agreement: float = column(
        "fraction of test inputs with equal largest output; nan if an output is nan"
    )
    condition_number: float = column("largest sigma_max / sigma_min of K among the linear systems")
    rounding: float = column("sum over all systems of n eps condition_number, for n equations")
    equations: int = column("number of equations in all systems")
    numerical_rank: int = column("numerical rank of K, summed over all systems")
    structural_rank: int = column("largest rank that the zeros of K allow, summed over all systems")
    full_rank: bool = column("whether every system can be solved for every target")
    cut_off_units: int = column("hidden units with no incoming or no outgoing weight")
    solver: str = column("method that solved the linear systems")
    target_accuracy: float = column(
        "fraction of digits that the target classifies correctly; nan if random"
    )
