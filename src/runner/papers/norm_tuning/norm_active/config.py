"""Parameters of study `norm_active`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.choices import OPTIMIZERS, SCHEDULES
from runner.core.errors import InputError
from runner.core.studies import LARGEST_STEP, MOST, StudyConfig, parameter

OF_WEIGHTS = ("dense", "rotated_weights")
OF_SCALES = ("scales", "rotated_scales", "singular_scales")
WITH_HIDDEN = ("from_active", "from_zero")
"""Arms that train a dense network, only γ with active hidden ReLUs, or γ and all shifts."""

ARMS = (*OF_WEIGHTS, *OF_SCALES, *WITH_HIDDEN)

EXACT = 1e-6
"""A network whose error is below this fraction of the target's variance has found the target."""


@dataclass(frozen=True)
class NormActive(StudyConfig):
    """Parameters of a control of paper A's training: with active ReLUs γ trains a dense network.

    Several ways to train the same function, each at the learning rate that other networks choose.
    """

    study: ClassVar[str] = "norm_active"
    named: ClassVar[tuple[str, ...]] = ("target_width", "arms")

    target_width: int = parameter(
        "d: width and input dimension of the target (1 or more)", 10, minimum=1
    )
    arms: list[str] = parameter(
        "what is trained: all weights of a network of the target's shape (dense), or in rotated"
        " axes (rotated_weights); γ with active ReLUs (scales), in rotated axes (rotated_scales),"
        " in the axes of the singular vectors of K (singular_scales); γ and all shifts, from hidden"
        " shifts of `shift` (from_active) or 0 (from_zero)",
        ["scales"],
        choices=ARMS,
    )
    ratio: int = parameter("m / d^2: hidden units of the frozen network / d^2", 1, minimum=1)
    shift: float = parameter("initial hidden shifts of the arm from_active", 20.0, minimum=0)
    optimizer: str = parameter("optimizer of all trained parameters", "adam", choices=OPTIMIZERS)
    schedule: str = parameter(
        "learning rate schedule: constant, or a curve by which the learning rate falls to zero",
        "cosine",
        choices=SCHEDULES,
    )
    steps: int = parameter("number of training steps, each on new samples", 2000, minimum=1)
    batch_size: int = parameter("number of samples of one training step", 256, minimum=1)
    test_samples: int = parameter(
        "number of new samples on which the errors are measured", 20_000, minimum=2
    )
    learning_rates: list[float] = parameter(
        "learning rates of γ or of the weights; other networks than the judged ones choose one",
        [0.1],
        above=0,
        maximum=LARGEST_STEP,
    )
    shift_rates: list[float] = parameter(
        "learning rates of the shifts; 0: fixed. They are chosen as the rates of γ are if hidden"
        " shifts are trained, too; otherwise networks are judged at each, with the rate of γ that"
        " is best at the first one",
        [0.0],
        minimum=0,
        maximum=LARGEST_STEP,
    )
    replicates: int = parameter(
        "number of independent repetitions (target, weights and samples)",
        48,
        minimum=1,
        maximum=MOST,
    )
    selection_replicates: int = parameter(
        "number of additional repetitions, which only choose learning rates",
        16,
        minimum=1,
        maximum=MOST,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        hidden = set(self.arms) & set(WITH_HIDDEN)
        if hidden and len(hidden) < len(self.arms):
            raise InputError(
                f"arms: {' and '.join(sorted(hidden))} need a separate run, since their shifts"
                " have other learning rates"
            )
        if not set(self.arms) - set(OF_WEIGHTS):
            self.refuse(["ratio"], f"arms=[{','.join(self.arms)}]")
        if "from_active" not in self.arms:
            self.refuse(["shift"], f"arms=[{','.join(self.arms)}]")

    @property
    def m(self) -> int:
        """Return the number of hidden units of the frozen network."""
        return self.ratio * self.target_width**2

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, one for each kind of random numbers."""
        return ("target", "dense", "W1", "W2", "rotation", "train", "test")
