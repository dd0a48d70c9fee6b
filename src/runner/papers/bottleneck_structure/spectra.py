"""Determine the rank of a network from its singular values."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.networks.spectra import svdvals
from runner.papers.bottleneck_structure.networks import Derivatives, Jacobians, Network

THRESHOLD = 0.1
"""Paper D, figure 1: the rank is the number of singular values of W_{L/2} above 0.1."""
FLOOR = 0.01
"""Fraction of the largest singular value below which a gap does not count."""


def bottleneck_rank(singular_values: Sequence[Float[Tensor, " _"]]) -> int:
    """Return the smallest number of singular values above 0.1 of any W_l (section 1)."""
    return min(map(threshold_rank, singular_values))


def jacobian_ranks(jacobian: Jacobians) -> Int[Tensor, " N"]:
    """Rank J f(x) at every point: singular values above a hundredth of the largest there.

    The largest of them is Rank_J(f) (section 3.1). 0 where the Jacobian is 0 or nan.
    """
    s = svdvals(jacobian)
    return ((s > FLOOR * s[:, :1]) & torch.isfinite(s)).sum(1)


def ranks(network: Network, derivatives: Derivatives) -> dict[str, int]:
    """Return the rank of a network, determined in four ways; the names are columns of the tables.

    rank: number of singular values of W_{L/2} above 0.1; rank_gap: the k with their largest s_k /
    s_{k+1}; bottleneck_rank: the smallest such number of any layer; jacobian_rank: the largest Rank
    J f(x) over the points.
    """
    singular_values = spectra(network)
    middle = singular_values[network.depth // 2 - 1]
    return {
        "rank": threshold_rank(middle),
        "rank_gap": gap_rank(middle),
        "bottleneck_rank": bottleneck_rank(singular_values),
        "jacobian_rank": int(jacobian_ranks(derivatives.jacobian).max()),
    }


def spectra(network: Network) -> list[Float[Tensor, " _"]]:
    """Return the singular values of W_1 .. W_L, each list falling."""
    return [svdvals(W) for W in network.weights]


def threshold_rank(s: Float[Tensor, " _"]) -> int:
    """Return the number of singular values above 0.1; 0 where they are nan."""
    return int((s > THRESHOLD).sum())


def gap_rank(s: Float[Tensor, " _"]) -> int:
    """Return the k at which s_k / s_{k+1} is largest; 0 when none is above 0.1, as where they are
    nan.

    Shrinking singular values may stay above a fixed threshold long after a gap has opened.
    """
    if not s[0] > THRESHOLD:
        return 0
    if len(s) == 1:
        return 1
    floored = s.clamp(min=FLOOR * float(s[0]))
    return int((floored[:-1] / floored[1:]).argmax()) + 1
