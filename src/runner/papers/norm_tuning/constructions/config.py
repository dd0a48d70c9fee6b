"""Parameters of study `constructions`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import MOST, StudyConfig, parameter


@dataclass(frozen=True)
class Constructions(StudyConfig):
    """Parameters of the constructions of paper A (Theorems 1 to 3, Corollary 1)."""

    study: ClassVar[str] = "constructions"
    named: ClassVar[tuple[str, ...]] = ("theorem", "target_width")

    theorem: str = parameter(
        "construction to test: Theorem 1 (wide), 2 (deep) or 3 (sparse), or Corollary 1 (low_rank)",
        "wide",
        choices=("wide", "low_rank", "deep", "sparse"),
    )
    target: str = parameter(
        "target network: random matrices of spectral norm 1, a random 3 x 3 convolution of d"
        " channels (theorem=wide, depth=1), or a trained digit classifier of hidden width d",
        "random",
        choices=("random", "convolution", "digits"),
    )
    target_width: int = parameter(
        "d: width of the target (and its input dimension, if target=random)", 16, minimum=1
    )
    depth: int = parameter("l: number of layers of the target", 1, minimum=1, maximum=MOST)
    width: int | None = parameter(
        "m: number of hidden units of each pair of frozen layers (theorem=wide or sparse; null:"
        " d^2; 9 d^2 channels for target=convolution)",
        None,
        minimum=1,
    )
    rank: int = parameter(
        "r: rank of the target's matrices (theorem=low_rank; at most d)", 2, minimum=1
    )
    block: int = parameter(
        "k: number of inputs that enter at one layer (theorem=deep; at most d)", 4, minimum=1
    )
    sparsity: float = parameter(
        "p: fraction of the frozen weights that are not zero (theorem=sparse)",
        1.0,
        above=0,
        maximum=1,
    )
    distribution: str = parameter(
        "distribution of the frozen weights, up to a factor: normal, uniform on [0, 1), or"
        " torch_default (uniform on [-1, 1))",
        "normal",
        choices=("normal", "uniform", "torch_default"),
    )
    dtype: str = parameter(
        "arithmetic: double precision, or mpmath with `precision` digits (theorem=deep)",
        "float64",
        choices=("float64", "mpmath"),
    )
    precision: int = parameter(
        "number of decimal digits of dtype=mpmath (20 or more)", 100, minimum=20
    )
    points: int = parameter(
        "number of random inputs on which both networks are compared", 500, minimum=1
    )
    replicates: int = parameter(
        "number of independent repetitions (target and weights)",
        5,
        minimum=1,
        maximum=MOST,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        theorem, d = self.theorem, self.target_width
        if self.dtype == "mpmath" and theorem != "deep":
            raise InputError(f"dtype=mpmath needs theorem=deep, not theorem={theorem}")
        if self.sparsity < 1 and theorem != "sparse":
            raise InputError(
                f"sparsity={self.sparsity} needs theorem=sparse: theorem={theorem}"
                " has no sparse weights"
            )
        if self.width is not None and theorem not in ("wide", "sparse"):
            raise InputError(f"theorem={theorem} sets its own width: give width=null")
        if theorem == "low_rank" and self.rank > d:
            raise InputError(f"rank={self.rank} is above target_width={d}: give {d} or less")
        if self.target == "convolution" and (theorem, self.depth) != ("wide", 1):
            raise InputError("target=convolution needs theorem=wide and depth=1")
        if theorem == "deep" and self.block > d:
            raise InputError(f"block={self.block} is above target_width={d}: give {d} or less")

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, one for each kind of random numbers."""
        return ("target", "inputs", "frozen weights")
