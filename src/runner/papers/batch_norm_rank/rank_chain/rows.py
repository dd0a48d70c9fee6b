"""The columns of the tables of study `rank_chain`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class ChainAverage(Row):
    """One row for each width and gamma: averages over depth.

    Columns ending in `_se` are standard errors of the averages. Columns ending in `_sd` are
    standard deviations over depth.
    """

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("width", "skip", "law")
    averages: ClassVar[bool] = True

    width: int = column("d, width of the network")
    skip: float = column("gamma; inf: no skip connection")
    law: str = column("distribution of the weights")
    soft_rank: float = column("soft rank rank_tau (Eq. 3)")
    soft_rank_se: float = column("standard error of soft_rank")
    soft_rank_sd: float = column("standard deviation of soft_rank over depth")
    rank_bound: float = column("r(H), lower bound of the rank (Eq. 4)")
    rank_bound_se: float = column("standard error of rank_bound")
    rank_bound_sd: float = column("standard deviation of rank_bound over depth")
    frobenius: float = column("squared norm ||M||_F^2")
    frobenius_se: float = column("standard error of frobenius")
    regularity: float = column("regularity constant alpha (Definition 3)")
    regularity_se: float = column("standard error of regularity")
    autocorrelation: float = column("integrated autocorrelation time of the soft rank, in layers")
    layers: int = column("L: number of layers in the average, over all networks")


@dataclass(frozen=True)
class SingularValue(Row):
    """One row for each network, layer and singular value, from nearly collinear inputs."""

    table: ClassVar[str] = "spectrum"
    keys: ClassVar[tuple[str, ...]] = ("width", "skip", "layer", "replicate", "index")

    width: int
    skip: float
    layer: int = column("0: the normalized input")
    replicate: int = column("index of the independent network, from 0")
    index: int = column("index of the singular value, from 1 (the largest)")
    singular_value: float = column("singular value of H_l / sqrt(N)")


@dataclass(frozen=True)
class ProductLayer(Row):
    """One row for each network and measured layer l, without normalization.

    B_l is the product of all layers up to l. B_l is applied to Gaussian inputs X and scaled: H~_l =
    B_l X / ||B_l X||_F. sigma_1 and sigma_2 are the largest two singular values of H~_l.
    """

    table: ClassVar[str] = "products"
    keys: ClassVar[tuple[str, ...]] = ("width", "skip", "law", "replicate", "layer")

    width: int
    skip: float
    law: str
    replicate: int = column("index of the independent network, from 0")
    layer: int
    log_ratio: float = column("log(sigma_2 / sigma_1)")
    step_length: float = column("||H~_l - H~_{l-1}||_F")
    gap: float = column(
        "expected fall of log_ratio per layer: lambda_1 - lambda_2 for Gaussian weights"
    )
    gap_se: float = column("standard error of gap")


@dataclass(frozen=True)
class NormExpansion(Row):
    """One row for each gamma and matrix M of second moments: change of ||M||_F^2 over one layer.

    M is drawn from the invariant distribution, that is, from deep layers.
    """

    table: ClassVar[str] = "expansions"
    keys: ClassVar[tuple[str, ...]] = ("width", "skip", "law", "replicate")

    width: int
    skip: float
    law: str
    replicate: int = column("index of the independent network, from 0")
    change: float = column("(E ||M_+||_F^2 - ||M||_F^2) / gamma^2, Monte Carlo over W")
    change_se: float = column("standard error of change")
    predicted: float = column("delta_F(M) of Lemma 7")


@dataclass(frozen=True)
class InputRank(Row):
    """One row for each width, gamma and rank of the inputs: averages over depth, a growth rate."""

    table: ClassVar[str] = "input_ranks"
    keys: ClassVar[tuple[str, ...]] = ("width", "skip", "input_rank")
    averages: ClassVar[bool] = True

    width: int
    skip: float
    input_rank: int = column("k, rank of the input")
    soft_rank: float = column("soft rank rank_tau (Eq. 3)")
    soft_rank_se: float = column("standard error of soft_rank")
    rank_bound: float = column("r(H), lower bound of the rank (Eq. 4)")
    rank_bound_se: float = column("standard error of rank_bound")
    exponent: float = column("growth of one more direction in nats per layer; stable if below 0")
    exponent_se: float = column("standard error of exponent")
