"""The columns of the tables of study `symmetry`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column
from runner.papers.bottleneck_structure.rows import TheoremCheck as TheoremCheck


@dataclass(frozen=True)
class AtStage:
    """The columns `stage` and `replicate`, which together identify a network of this study.

    The row classes of this study inherit them. stage: whether the network is measured before or
    after training.
    """

    stage: str = column("untrained or trained")
    replicate: int


@dataclass(frozen=True)
class LayerMeasures(AtStage, Row):
    """One row for each stage, replicate and layer 1 .. L.

    Representations are alpha_l(X); for l = L they are the outputs.
    """

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("stage", "replicate", "layer")

    layer: int = column("index of the layer, 1 to L")
    s1: float = column("largest singular value of W_l")
    s2: float = column("second largest singular value of W_l")
    s3: float = column("third largest singular value of W_l")
    s4: float = column("fourth largest singular value of W_l; 0 if there are fewer")
    rank: int = column("number of singular values of W_l above 0.1")
    rank_gap: int = column("the k with the largest s_k / s_{k+1}")
    knn_r2_axis: float = column("R^2 of (w.v)^2 predicted from two principal components of layer l")
    knn_r2_orthogonal: float = column("R^2 of ||(I - w w^T) v||^2 predicted from these components")
    step_r2: float = column("R^2 of the next step along a path predicted from nearby paths")
    orbit_ratio: float = column("mean distance within an orbit / mean distance between orbits")
    plane_ratio: float = column("orbit_ratio for circles in a plane orthogonal to w")


@dataclass(frozen=True)
class NetworkAtStage(AtStage, Row):
    """One row for each stage (before or after training) and replicate: measures of the network."""

    table: ClassVar[str] = "networks"
    keys: ClassVar[tuple[str, ...]] = ("stage", "replicate")

    parameter_norm: float = column("squared norm of the parameters, ||theta||^2")
    train_cost: float = column("training cost C; the zero network costs 1")
    test_cost: float = column("test cost C on new initial points; the zero network costs 1")
    rank: int = column("number of singular values of W_{L/2} above 0.1")
    bottleneck_rank: int = column("smallest number of singular values above 0.1 of any W_l")
    jacobian_rank: int = column("largest Rank J f(x) over new initial points")
    rank_share: float = column("fraction of new initial points with this rank")
    rank_gap: int = column("the k with the largest s_k / s_{k+1} of W_{L/2}")
    imbalance: float = column("relative imbalance of the parameters; 0 if balanced")
    ntk_trace: float = column("mean Tr Theta(x, x) over new initial points")


@dataclass(frozen=True)
class SingularValue(AtStage, Row):
    """Panel (a) of figure 2: one row for each singular value of every weight matrix W_l."""

    table: ClassVar[str] = "spectrum"
    keys: ClassVar[tuple[str, ...]] = ("stage", "replicate", "layer", "index")
    in_every_replicate: ClassVar[bool] = False

    layer: int = column("index of the layer, 1 to L")
    index: int = column("index of the singular value, from 1 (the largest)")
    singular_value: float = column("singular value of W_l")


@dataclass(frozen=True)
class PathPoint(AtStage, Row):
    """Panel (b) of figure 2: one row for each point of each gradient-descent path.

    pc1 and pc2 are its coordinates on the first two principal components of alpha_6(X).
    """

    table: ClassVar[str] = "embedding"
    keys: ClassVar[tuple[str, ...]] = ("stage", "replicate", "path", "time")

    path: int = column("index of the path, from 0")
    time: int = column("steps of gradient descent along the path")
    pc1: float = column("first principal component of alpha_6")
    pc2: float = column("second principal component")
    axis: float = column("(w.v)^2")
    orthogonal: float = column("||(I - w w^T) v||^2")


@dataclass(frozen=True)
class Distance(AtStage, Row):
    """Panel (c) of figure 2: one row for each point of a plane orthogonal to w through 0."""

    table: ClassVar[str] = "distance"
    keys: ClassVar[tuple[str, ...]] = ("stage", "replicate", "first", "second")

    first: float = column("first coordinate of v in the plane")
    second: float = column("second coordinate of v in the plane")
    distance: float = column("||alpha_2(x_0) - alpha_2(x)||")
