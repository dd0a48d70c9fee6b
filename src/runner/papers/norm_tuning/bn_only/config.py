"""The parameters of study `bn_only`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import MOST, StudyConfig, parameter

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
    replicates: int = parameter("independent repetitions", 5, minimum=1, maximum=MOST)
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
