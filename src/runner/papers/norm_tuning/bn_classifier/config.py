"""The parameters of study `bn_classifier`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import LARGEST_STEP, MOST, TrainingConfig, parameter


@dataclass(frozen=True)
class BnClassifier(TrainingConfig):
    """Paper A, Theorem 1: a digit classifier inside a frozen network, built and trained."""

    study: ClassVar[str] = "bn_classifier"

    target_width: int = parameter("hidden width of the classifier that is rebuilt", 16, minimum=1)
    epochs: int = parameter("passes over the training images", 60, minimum=1)
    batch_size: int = parameter("images of one step", 128, minimum=2)
    learning_rates: list[float] = parameter(
        "rates of Adam that are tried", [1e-3, 3e-3, 0.01, 0.03, 0.1], above=0, maximum=LARGEST_STEP
    )
    replicates: int = parameter("independent repetitions", 10, minimum=1, maximum=MOST)
    selection_replicates: int = parameter(
        "replicates on which the rate is chosen; they are not used for results",
        2,
        minimum=1,
        maximum=MOST,
    )
