"""The columns of the tables of study `invariances`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column

AT = ("architecture", "replicate", "learning_rate", "time")


@dataclass(frozen=True)
class At:
    """Columns of all tables that identify a network and the time of a measurement."""

    architecture: str
    replicate: int
    learning_rate: float
    time: float = column("time of the flow, or length of the path if normalized_time")


@dataclass(frozen=True)
class Drift(At, Row):
    """A row of the table `metrics.csv`: how far some entries of one invariant D have moved.

    There is a row for each replicate, learning rate, time, place in the network, and part of D. D
    is the matrix V^T V - U U^T of neurons at this place.
    """

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = (*AT, "layer", "place", "pair")

    layer: int = column("l: the neurons between layers l and l + 1, or within the block l; from 1")
    place: str = column(
        "kinds of the two layers, or `within <kind>`; of a graph `linear units`, `nonlinear"
        " units`, `cut`, `beside frozen` (a weight not learned); of a layer its kind"
    )
    item: int = column("item of Theorem 1; 0: none for this place")
    linear: bool = column("whether the neurons are linear")
    pair: str = column(
        "what drifts: entries of D (diagonal, full, or those of neuron pairs: active: always on;"
        " mixed: with one activation pattern), or of Lemma 3: layer (norms of layers and cuts),"
        " less an edge (cuts without their largest weight)"
    )
    promised: bool = column("whether these entries are constant by the paper")
    entries: int = column("number of these entries of D")
    drift: float = column(
        "Frobenius norm of the entries' change; pair=layer: the largest change so far"
    )
    initial: float = column("Frobenius norm of these entries at the start")


@dataclass(frozen=True)
class LayerSpectrum(At, Row):
    """A row of the table `lowrank.csv`: norms and singular values of one layer at one time.

    There is a row for each replicate, learning rate, time and layer.
    """

    table: ClassVar[str] = "lowrank"
    keys: ClassVar[tuple[str, ...]] = (*AT, "layer")

    log_flow_time: float = column(
        "natural logarithm of the gradient flow's time; -inf at the start"
    )
    log_loss: float = column("natural logarithm of the risk")
    loss: float
    separates: bool = column(
        "whether the risk is below loss(0) / n: all examples classified (Corollary 1)"
    )
    layer: int = column("index of the layer, from 1")
    kind: str = column("dense, conv, or residual_<skip>")
    frobenius: float = column("||U||_F^2, U the layer's matrix with one row per output")
    operator_ratio: float = column("||W||_2^2 / ||W||_F^2")
    alignment: float = column("|<v_{l+1}, u_l>|; nan for the last layer")
    skip_share: float = column("||Z||_F^2 / ||[W2 Z]||_F^2 of a free block; nan elsewhere")
    bound: float = column("Theorem 2, Eq. (14): 1 / (8^N M); nan where the theorem does not apply")
    trivial_bound: float = column("1 / min(rows, columns): the largest is at least the mean")
    finite_bound: float = column(
        "bound of operator_ratio by Eq. (13), its constant at initialization"
    )


@dataclass(frozen=True)
class AssumptionCheck(At, Row):
    """A row of the table `assumptions.csv`: checks of Assumptions 1 and 2 of paper C.

    There is a row for each replicate, learning rate and measured time.
    """

    table: ClassVar[str] = "assumptions"
    keys: ClassVar[tuple[str, ...]] = AT

    sign_changes: float = column("fraction of weights whose sign differs from the record before")
    turned: float = column("angle between the weights here and at the record before, in radians")
    smallest: float = column("smallest |weight| / root mean square of all weights")
    off: float = column("fraction of nonlinear neurons that are active for no example")
    margin: float = column(
        "margin of a linear network / largest possible margin; nan for other networks"
    )


@dataclass(frozen=True)
class Decomposition(At, Row):
    """A row of the table `decomposition.csv`: the distance of a network from its tree of Lemma 1.

    There is a row for each replicate at the smallest learning rate, before and after training.
    """

    table: ClassVar[str] = "decomposition"
    keys: ClassVar[tuple[str, ...]] = AT

    paths: int = column("number of paths from the inputs to the output")
    output: float = column("largest |f(x)| over some examples")
    error: float = column(
        "largest |f(x) - mu(rho(x))| over these examples, mu the tree network of Lemma 1"
    )
    frozen_error: float = column("error with the initial signs in mu")
