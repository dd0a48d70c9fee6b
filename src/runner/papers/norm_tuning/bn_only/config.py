"""Parameters of study `bn_only`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.choices import OPTIMIZERS, SCHEDULES
from runner.core.studies import LARGEST_STEP, MOST, TrainingConfig, parameter

PAPER = ("sgd", "teacher_construction", "dense", "student_construction")
"""Methods of the paper's figures 4 and 5."""

SHIFT_MARGIN = 7.0
"""Margin c: a Gaussian input has norm > sqrt(d) + c with probability below exp(-24)."""


@dataclass(frozen=True)
class BnOnly(TrainingConfig):
    """Parameters of figures 4 and 5 of paper A, and of additional figures.

    The experiment: gamma and beta of a frozen random network f are set by Theorem 1, or trained by
    SGD.
    """

    study: ClassVar[str] = "bn_only"
    named: ClassVar[tuple[str, ...]] = ("target_width",)
    # Changes: statistics of the batch, measured learning rates, one budget, widths share units.
    version: ClassVar[int] = 3

    target_width: int = parameter(
        "d: width and input dimension of the target (1 or more)", 10, minimum=1
    )
    widths: list[int] | None = parameter(
        "m: numbers of hidden units of the frozen network; null: d^2", None, minimum=1
    )
    sparsity: float = parameter(
        "p: fraction of the frozen weights that are not zero (above 0, at most 1)",
        1.0,
        above=0,
        maximum=1,
    )
    methods: list[str] = parameter("methods to compare", list(PAPER), choices=PAPER)
    replicates: int = parameter(
        "number of independent repetitions (target, weights and samples)",
        8,
        minimum=1,
        maximum=MOST,
    )
    train_samples: int = parameter(
        "number of samples of the training set, rounded up to 12 equal parts; training sees each"
        " sample `epochs` times",
        512_000,
        minimum=1,
    )
    epochs: int = parameter("number of passes over the training set", 1, minimum=1, maximum=MOST)
    test_samples: int = parameter(
        "number of new samples on which the errors are measured", 20_000, minimum=2
    )
    batch_size: int = parameter("number of samples of one training step", 256, minimum=2)
    statistics: str = parameter(
        "mean and variance of the normalization layers in training: batch (computed from each"
        " batch) or fixed (0 and 1: the affine maps of Proposition 1)",
        "batch",
        choices=("batch", "fixed"),
    )
    optimizer: str = parameter(
        "optimizer of γ and β, and of the dense network", "sgd", choices=OPTIMIZERS
    )
    schedule: str = parameter(
        "learning rate schedule: constant, or a curve by which the learning rate falls to zero",
        "constant",
        choices=SCHEDULES,
    )
    learning_rate: float | None = parameter(
        "learning rate (above 0); null: half of the largest stable learning rate of SGD, measured"
        " on the first batch of each network",
        None,
        above=0,
        maximum=LARGEST_STEP,
    )

    @property
    def m(self) -> list[int]:
        """Return the widths of the frozen network f: its numbers m of hidden units."""
        return self.widths or [self.target_width**2]

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, one for each kind of random numbers."""
        return ("target", "student", "W1", "W2", "train", "test")
