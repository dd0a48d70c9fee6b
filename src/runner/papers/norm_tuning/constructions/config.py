"""The parameters of study `constructions`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import MOST, StudyConfig, parameter


@dataclass(frozen=True)
class Constructions(StudyConfig):
    """Paper A, Theorems 1 to 3 and Corollary 1: the constructions, computed and compared."""

    study: ClassVar[str] = "constructions"

    theorem: str = parameter(
        "wide: Theorem 1, low_rank: Corollary 1, deep: Theorem 2, sparse: Theorem 3",
        "wide",
        choices=("wide", "low_rank", "deep", "sparse"),
    )
    target: str = parameter(
        "random: Gaussian with spectral norm 1; digits: a trained classifier with hidden width d",
        "random",
        choices=("random", "digits"),
    )
    target_width: int = parameter("d: width (and input dimension, if random)", 16, minimum=1)
    depth: int = parameter("l: layers of the target", 1, minimum=1, maximum=MOST)
    width: int | None = parameter(
        "m: hidden width of each pair of layers, wide and sparse only; null: as the theorem says",
        None,
        minimum=1,
    )
    rank: int = parameter("r: rank of the target's matrices, low_rank only", 2, minimum=1)
    block: int = parameter("k: inputs that enter at one layer, deep only", 4, minimum=1)
    sparsity: float = parameter(
        "p: fraction of frozen weights kept, sparse only", 1.0, above=0, maximum=1
    )
    distribution: str = parameter(
        "of the frozen weights, but for a factor: normal; uniform: on [0, 1); torch_default: on"
        " [-1, 1)",
        "normal",
        choices=("normal", "uniform", "torch_default"),
    )
    dtype: str = parameter(
        "mpmath: `precision` decimal digits, deep only", "float64", choices=("float64", "mpmath")
    )
    precision: int = parameter("decimal digits of dtype=mpmath", 100, minimum=20)
    points: int = parameter("random inputs that both networks are compared on", 500, minimum=1)
    replicates: int = parameter("independent repetitions", 5, minimum=1, maximum=MOST)

    def __post_init__(self) -> None:
        super().__post_init__()
        theorem, d = self.theorem, self.target_width
        if self.dtype == "mpmath" and theorem != "deep":
            raise InputError(f"dtype=mpmath is for theorem=deep, not for theorem={theorem}")
        if self.sparsity < 1 and theorem != "sparse":
            raise InputError(f"sparsity={self.sparsity} is for theorem=sparse, not {theorem}")
        if self.width is not None and theorem not in ("wide", "sparse"):
            raise InputError(f"theorem={theorem} sets its own width: give width=null")
        if theorem == "low_rank" and self.rank > d:
            raise InputError(f"rank={self.rank} is above target_width={d}: give {d} or less")
        if theorem == "deep" and self.block > d:
            raise InputError(f"block={self.block} is above target_width={d}: give {d} or less")

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the random streams."""
        return ("target", "inputs", "frozen weights")
