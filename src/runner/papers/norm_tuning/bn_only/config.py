"""The parameters of study `bn_only`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.names import OPTIMIZERS, SCHEDULES
from runner.core.studies import LARGEST_STEP, MOST, TrainingConfig, parameter

PAPER = ("sgd", "teacher_construction", "dense", "student_construction")
"""The curves of the paper's figures 4 and 5."""

SHIFT_MARGIN = 7.0
"""A standard Gaussian input exceeds the norm sqrt(d) + 7 with probability below exp(-24)."""


@dataclass(frozen=True)
class BnOnly(TrainingConfig):
    """Paper A, figures 4 and 5: setting normalization parameters against training them."""

    study: ClassVar[str] = "bn_only"
    # Statistics of the batch, measured rates, one budget, widths share units.
    version: ClassVar[int] = 3

    target_width: int = parameter("d: width and input dimension of the target", 10, minimum=1)
    widths: list[int] | None = parameter("m: hidden widths of f; null: d^2", None, minimum=1)
    sparsity: float = parameter("p: fraction of non-zero frozen weights", 1.0, above=0, maximum=1)
    methods: list[str] = parameter(
        "what to compare", list(PAPER), choices=(*PAPER, "corrected_construction")
    )
    replicates: int = parameter("independent repetitions", 8, minimum=1, maximum=MOST)
    train_samples: int = parameter(
        "the training set, rounded up to 12 equal parts; each sample is seen `epochs` times",
        512_000,
        minimum=1,
    )
    epochs: int = parameter("how often the training set is seen", 1, minimum=1, maximum=MOST)
    test_samples: int = parameter("samples that the errors are measured on", 20_000, minimum=2)
    batch_size: int = parameter("samples of one step", 256, minimum=2)
    statistics: str = parameter(
        "of the normalization layers in training: those of the batch, or fixed (Proposition 1)",
        "batch",
        choices=("batch", "fixed"),
    )
    optimizer: str = parameter("of what is trained", "sgd", choices=OPTIMIZERS)
    schedule: str = parameter("how its rate falls", "constant", choices=SCHEDULES)
    learning_rate: float | None = parameter(
        "of what is trained; null: half of where SGD becomes unstable",
        None,
        above=0,
        maximum=LARGEST_STEP,
    )

    @property
    def m(self) -> list[int]:
        """The hidden widths of f."""
        return self.widths or [self.target_width**2]

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the random streams."""
        return ("target", "student", "W1", "W2", "train", "test")
