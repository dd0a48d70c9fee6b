"""The columns of the tables of study `low_rank_training`."""

from dataclasses import dataclass, fields
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class Network:
    """Columns of all tables that identify a network and the epoch of a measurement."""

    data: str
    classes: int = column("K, number of classes")
    architecture: str
    optimizer: str
    loss_function: str
    gain: float
    width: int = column("w, width of the layers")
    learning_rate: float
    weight_decay: float = column("weight decay lambda")
    replicate: int
    epoch: int = column("number of finished epochs")
    time: float = column("T: sum of the learning rates; with momentum divided by 1 - momentum")
    diverged: bool = column("whether the loss was infinite, nan, or above twice its initial value")


AT = tuple(item.name for item in fields(Network))[:-2]
"""Key columns of a row up to the epoch."""


@dataclass(frozen=True)
class NetworkEpoch(Network, Row):
    """A row of the table `training.csv`: loss and accuracies of a network at a measured epoch."""

    table: ClassVar[str] = "training"
    keys: ClassVar[tuple[str, ...]] = AT

    loss: float = column("mean over all training images, without weight decay")
    accuracy: float = column("fraction of the training images that are classified correctly")
    test_accuracy: float = column("fraction of the test images that are classified correctly")
    sharpness: float = column(
        "largest eigenvalue of the Hessian of the loss, by a Lanczos iteration"
    )


@dataclass(frozen=True)
class LayerEpoch(Network, Row):
    """A row of the table `layers.csv`: one of a network's last three layers at one measured epoch.

    D_l is the matrix W_{l+1}^T W_{l+1} - W_l W_l^T, which gradient flow conserves.
    """

    table: ClassVar[str] = "layers"
    keys: ClassVar[tuple[str, ...]] = (*AT, "layer")

    layer: int = column("l, from 1; the tail is the last three")
    frobenius: float = column("||W_l||_F^2")
    ratio: float = column(
        "k largest squared singular values / frobenius; k = 1 for K = 2, else K - 1"
    )
    top: float = column("largest squared singular value")
    remainder: float = column("sum of all squared singular values except the k largest")
    lower: float = column("smallest remainder that the invariants allow, times exp(-2 lambda T)")
    upper: float = column("largest remainder that the invariants allow, times exp(-2 lambda T)")
    alignment: float = column("|<v_{l+1}, u_l>|; nan for the last layer")
    drift: float = column("||D_l - exp(-2 lambda T) D_l(0)||_F; nan for the last layer")
    initial_invariant: float = column("||D_l(0)||_F; nan for the last layer")


@dataclass(frozen=True)
class SingularValue(Network, Row):
    """A row of the table `spectrum.csv`: one singular value of one layer after training.

    The layers are the last three of each network, which are linear.
    """

    table: ClassVar[str] = "spectrum"
    keys: ClassVar[tuple[str, ...]] = (*AT, "layer", "index")

    layer: int = column("index of the layer among the last three, from 1")
    index: int = column("index of the singular value, from 1 (the largest)")
    singular_value: float = column("singular value of W_l")
