"""The columns of the tables of study `bottleneck`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column
from runner.papers.bottleneck_structure.rows import TheoremCheck as TheoremCheck


@dataclass(frozen=True)
class OfNetwork:
    """Columns that identify a network; the row classes of this study inherit them."""

    recipe: str
    depth: int = column("L, number of layers")
    replicate: int


@dataclass(frozen=True)
class TrainedNetwork(OfNetwork, Row):
    """One row for each depth and replicate: measures of the network at the end of training."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("recipe", "depth", "replicate")

    parameter_norm: float = column("squared norm of the parameters, ||theta||^2")
    train_cost: float = column("training cost C; the zero network costs 1")
    test_cost: float = column("test cost C")
    loss: float = column("loss C + lambda ||theta||^2")
    rank: int = column("number of singular values of W_{L/2} above 0.1")
    rank_gap: int = column("the k with the largest s_k / s_{k+1} of W_{L/2}")
    bottleneck_rank: int = column("the smallest number of singular values of a W_l above 0.1")
    jacobian_rank: int = column("the largest Rank J f(x) over the training inputs")
    spread: float = column("for minima: (second lowest loss - lowest loss) / lowest loss")
    best_start: float = column("for minima: the lowest loss from initializations of this depth")
    imbalance: float = column("relative imbalance of the parameters; 0 if balanced")
    ntk_trace: float = column("mean Tr Theta(x, x) over the training inputs")
    jacobian: float = column("largest ||J f(x)||_op over the training inputs")
    moved: float = column(
        "of a minimum: mean ||f(x) - g(x)||^2 on test inputs, g of the depth before"
    )


@dataclass(frozen=True)
class SingularValue(OfNetwork, Row):
    """One row for each singular value of every weight matrix W_l."""

    table: ClassVar[str] = "spectrum"
    keys: ClassVar[tuple[str, ...]] = ("recipe", "depth", "replicate", "layer", "index")
    in_every_replicate: ClassVar[bool] = False

    layer: int = column("index of the layer, 1 to L")
    index: int = column("index of the singular value, from 1 (the largest)")
    singular_value: float = column("singular value of W_l")


@dataclass(frozen=True)
class LayerTail(OfNetwork, Row):
    """One row for each layer: singular value k + 1 of its pre-activations, small by Corollary 8.

    k is the rank of the network. Section 3.3 expects sigma(a) = a for the pre-activations a in the
    bottleneck.
    """

    table: ClassVar[str] = "representation"
    keys: ClassVar[tuple[str, ...]] = ("recipe", "depth", "replicate", "layer")
    in_every_replicate: ClassVar[bool] = False

    rank: int = column("k: number of singular values of W_{L/2} above 0.1")
    layer: int = column("index of the layer, 1 to L")
    tail: float = column("s_{k+1}(W_l alpha_{l-1}(X) / sqrt N)")
    tail_with_bias: float = column(
        "s_{k+1}((W_l alpha_{l-1}(X) + b_l) / sqrt N); the proof drops b"
    )
    negative: float = column(
        "||sigma(a) - a||^2 / ||a||^2 of the pre-activations a at the training inputs"
    )
