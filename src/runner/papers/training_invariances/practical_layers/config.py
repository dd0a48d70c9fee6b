"""Parameters of study `practical_layers`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import LARGEST_FACTOR, LARGEST_STEP, MOST, StudyConfig, parameter

NETWORKS = ("max_pooling", "average_pooling", "batch_norm", "transformer", "gated")
"""Names of the networks; `networks.NETWORKS` has their modules."""


@dataclass(frozen=True)
class PracticalLayers(StudyConfig):
    """Parameters of study `practical_layers`: invariants of pooling, batch norm and attention."""

    study: ClassVar[str] = "practical_layers"
    named: ClassVar[tuple[str, ...]] = ("optimizer",)

    networks: list[str] = parameter("networks to train", list(NETWORKS), choices=NETWORKS)
    width: int = parameter("number of channels or neurons of each layer", 6, minimum=2)
    samples: int = parameter("n: number of training images (digits)", 128, minimum=2, maximum=1536)
    batch_size: int = parameter("number of digits in a minibatch", 16, minimum=2)
    optimizer: str = parameter(
        "optimizer of torch that trains the networks",
        "sgd",
        choices=("sgd", "momentum", "adam"),
    )
    weight_decay: float = parameter("weight decay λ", 0.0, minimum=0, maximum=LARGEST_FACTOR)
    learning_rates: list[float] = parameter(
        "learning rates, a network for each", [0.04, 0.02, 0.01], above=0, maximum=LARGEST_STEP
    )
    time: float = parameter(
        "T: sum of the learning rates; with momentum divided by 1 - momentum", 1.6, above=0
    )
    replicates: int = parameter(
        "number of independent repetitions (digits and initial weights)", 5, minimum=1, maximum=MOST
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, one for each kind of random numbers."""
        return ("images", "initialisation", "minibatches")
