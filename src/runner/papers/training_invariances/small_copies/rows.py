"""The columns of the tables of study `small_copies`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class FullyConnectedLayer(Row):
    """A row of `layers`: a fully connected layer at the end of a convolutional network."""

    table: ClassVar[str] = "layers"
    keys: ClassVar[tuple[str, ...]] = ("replicate", "layer", "trained")

    replicate: int
    layer: int = column("1 for the first fully connected layer, 3 for the output layer")
    trained: bool = column("whether the network is trained (false: at initialization)")
    ratio: float = column("‖W‖₂² / ‖W‖²: the largest squared singular value / the sum of all")
    accuracy: float = column("fraction of the training images with the right class")


@dataclass(frozen=True)
class LastFeatures(Row):
    """A row of `features`: the last hidden layer of a fully connected network."""

    table: ClassVar[str] = "features"
    keys: ClassVar[tuple[str, ...]] = ("replicate", "depth", "trained")

    replicate: int
    depth: int = column("number of layers of the network, with the output layer")
    trained: bool = column("whether the network is trained (false: at initialization)")
    effective_rank: float = column(
        "exp(−Σ p log p); p: squared singular values of the activations (n, width) / their sum"
    )
    loss: float = column("training loss, (f(x) − y)² averaged over outputs and images")
