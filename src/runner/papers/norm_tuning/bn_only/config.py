"""The parameters of study `bn_only`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import LARGEST_STEP, MOST, StudyConfig, parameter

PAPER = ("sgd", "teacher_construction", "dense", "student_construction")
"""The curves of the paper's figures."""

METHODS = (*PAPER, "corrected_construction", "batch_norm", "best", "dense_best")
OPTIMIZERS = ("sgd", "momentum", "adam")
SCHEDULES = ("constant", "cosine", "exponential")

SHIFT_MARGIN = 7.0
"""A standard Gaussian input exceeds the norm sqrt(d) + 7 with probability below exp(-24)."""


@dataclass(frozen=True)
class BnOnly(StudyConfig):
    """Paper A, figures 4 and 5: setting normalization parameters against training them."""

    study: ClassVar[str] = "bn_only"
    version: ClassVar[int] = 2  # rates from curvature, and the best of what was tried

    target_width: int = parameter("d: width and input dimension of the target", 10, minimum=1)
    width: int | None = parameter("m: hidden width of the learner; null: d^2", None, minimum=1)
    sparsity: float = parameter("p: fraction of non-zero frozen weights", 1.0, above=0, maximum=1)
    methods: list[str] = parameter("what to compare", list(PAPER), choices=METHODS)
    replicates: int = parameter("independent repetitions", 5, minimum=1, maximum=MOST)
    train_samples: int = parameter(
        "samples seen by each learner; dense sees twice as many", 512_000, minimum=1
    )
    test_samples: int = parameter("samples that the errors are measured on", 100_000, minimum=1)
    batch_size: int = parameter("samples of one step", 256, minimum=1)
    learning_rate: float | None = parameter(
        "of sgd and batch_norm; null: 1/(2d)", None, above=0, maximum=LARGEST_STEP
    )
    dense_learning_rate: float | None = parameter(
        "of dense; null: 1/d", None, above=0, maximum=LARGEST_STEP
    )
    optimizer: str = parameter("of sgd, batch_norm and dense", "sgd", choices=OPTIMIZERS)
    schedule: str = parameter("how their rates fall", "constant", choices=SCHEDULES)
    optimizers: list[str] = parameter(
        "what best and dense_best choose among", list(OPTIMIZERS), choices=OPTIMIZERS
    )
    schedules: list[str] = parameter(
        "what best and dense_best choose among", list(SCHEDULES), choices=SCHEDULES
    )
    selection_replicates: int = parameter(
        "replicates of their own that best and dense_best choose on", 2, minimum=1, maximum=MOST
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if "batch_norm" in self.methods and self.batch_size < 2:
            raise InputError("batch_size=1: one sample has no variance. Leave out batch_norm")

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
