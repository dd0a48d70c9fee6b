"""Determine the rank of a network from its singular values."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.core.arrays import takes_arrays
from runner.networks.spectra import svdvals
from runner.papers.bottleneck_structure.networks import Derivatives, Jacobians, Network

THRESHOLD = 0.1
"""Threshold of the rank, the number of singular values of W_{L/2} above it (paper D, figure 1)."""
FLOOR = 0.01
"""Fraction of the largest singular value below which gaps are ignored."""


@takes_arrays()
def bottleneck_rank(singular_values: Sequence[Float[Tensor, " _"]]) -> int:
    """Return the smallest number of singular values above 0.1 of any weight matrix (section 1).

    singular_values: the singular values of W_1 .. W_L.
    """
    return min(map(threshold_rank, singular_values))


@takes_arrays()
def jacobian_ranks(jacobian: Jacobians) -> Int[Tensor, " N"]:
    """Return Rank J f(x) at every point x; its maximum over x is Rank_J(f) (section 3.1).

    The rank is the number of singular values above a hundredth of the largest one at this point. It
    is 0 where the Jacobian is 0 or nan.
    """
    s = svdvals(jacobian)
    return ((s > FLOOR * s[:, :1]) & torch.isfinite(s)).sum(1)


@takes_arrays()
def ranks(network: Network, derivatives: Derivatives) -> dict[str, int]:
    """Return the rank of a network by four definitions, by the name of the tables' column.

    - rank: number of singular values of W_{L/2} above 0.1;
    - rank_gap: the k with the largest s_k / s_{k+1} of W_{L/2};
    - bottleneck_rank: the smallest number of singular values above 0.1 in any layer;
    - jacobian_rank: the largest Rank J f(x) over the points.
    """
    singular_values = spectra(network)
    middle = singular_values[network.depth // 2 - 1]
    return {
        "rank": threshold_rank(middle),
        "rank_gap": gap_rank(middle),
        "bottleneck_rank": bottleneck_rank(singular_values),
        "jacobian_rank": int(jacobian_ranks(derivatives.jacobian).max()),
    }


@takes_arrays()
def spectra(network: Network) -> list[Float[Tensor, " _"]]:
    """Return the singular values of W_1 .. W_L, each list in descending order."""
    return [svdvals(W) for W in network.weights]


@takes_arrays()
def threshold_rank(s: Float[Tensor, " _"]) -> int:
    """Return the number of singular values above 0.1; 0 if they are nan."""
    return int((s > THRESHOLD).sum())


@takes_arrays()
def gap_rank(s: Float[Tensor, " _"]) -> int:
    """Return the rank k with the largest gap s_k / s_{k+1} of the singular values s.

    s: in descending order. The rank is 0 if no value is above 0.1, or if all are nan. Values below
    a hundredth of the largest one count as this hundredth. Values that shrink in training stay
    above a fixed threshold for long, while the gap opens early.
    """
    if not s[0] > THRESHOLD:
        return 0
    if len(s) == 1:
        return 1
    floored = s.clamp(min=FLOOR * float(s[0]))
    return int((floored[:-1] / floored[1:]).argmax()) + 1
