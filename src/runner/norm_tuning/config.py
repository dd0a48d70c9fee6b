"""The parameters of paper A's studies, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.errors import InputError
from runner.studies import StudyConfig, parameter

METHODS = ("sgd", "teacher_construction", "dense", "student_construction")

SHIFT_MARGIN = 7.0
"""A standard Gaussian input exceeds the norm sqrt(d) + 7 with probability below exp(-24)."""


@dataclass(frozen=True)
class BnOnly(StudyConfig):
    """Paper A, figures 4 and 5: setting normalization parameters against training them."""

    study: ClassVar[str] = "bn_only"

    target_width: int = parameter("d: width and input dimension of the target", 10, minimum=1)
    width: int | None = parameter("m: hidden width of the learner; null: d^2", None, minimum=1)
    sparsity: float = parameter("p: fraction of non-zero frozen weights", 1.0, above=0, maximum=1)
    methods: list[str] = parameter("what to compare", list(METHODS), choices=METHODS)
    replicates: int = parameter("independent repetitions", 5, minimum=1)
    train_samples: int = parameter(
        "samples seen by sgd; dense sees twice as many", 512_000, minimum=1
    )
    test_samples: int = parameter("samples that the errors are measured on", 100_000, minimum=1)
    batch_size: int = parameter("samples of one SGD step", 256, minimum=1)
    learning_rate: float | None = parameter("null: 1/d for sgd, 1.5/d for dense", None, above=0)
    schedule: str = parameter(
        "how the rate falls", "constant", choices=("constant", "cosine", "exponential")
    )
    normalization: str = parameter(
        "affine: the theory's fixed statistics; batch: those of each batch",
        "affine",
        choices=("affine", "batch"),
    )

    @property
    def m(self) -> int:
        """The hidden width of the learner."""
        return self.target_width**2 if self.width is None else self.width

    def identity(self) -> dict:
        """As every study's, but `width=<d^2>` is the run that `width=null` names."""
        identity = super().identity()
        if self.width == self.target_width**2:
            del identity["width"]
        return identity


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
    depth: int = parameter("l: layers of the target", 1, minimum=1)
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
    dtype: str = parameter(
        "mpmath: `precision` decimal digits, deep only", "float64", choices=("float64", "mpmath")
    )
    precision: int = parameter("decimal digits of dtype=mpmath", 100, minimum=20)
    points: int = parameter("random inputs that both networks are compared on", 500, minimum=1)
    replicates: int = parameter("independent repetitions", 5, minimum=1)

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
