"""Parameters of study `norm_classifier`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import LARGEST_STEP, MOST, StudyConfig, parameter


@dataclass(frozen=True)
class NormClassifier(StudyConfig):
    """Parameters of a supplementary study: γ and β of a frozen digit classifier, set or trained."""

    study: ClassVar[str] = "norm_classifier"
    named: ClassVar[tuple[str, ...]] = ("target_width",)

    target_width: int = parameter("d: number of hidden units of the classifier", 10, minimum=1)
    steps: int = parameter("number of steps of Adam, each on all training images", 300, minimum=1)
    learning_rate: float = parameter(
        "initial learning rate of Adam; it falls to 0 along a cosine",
        0.1,
        above=0,
        maximum=LARGEST_STEP,
    )
    replicates: int = parameter(
        "number of independent repetitions (classifier and frozen weights)",
        8,
        minimum=1,
        maximum=MOST,
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, one for each kind of random numbers."""
        return ("target", "frozen weights")
