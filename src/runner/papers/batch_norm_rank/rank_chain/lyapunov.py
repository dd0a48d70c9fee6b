"""Measure how many directions survive: one more direction next to a network of rank k.

The chain never raises the rank of its input (footnote 15), so that inputs of rank `k` have a
separate invariant law. It is stable if an infinitesimal direction outside their range dies out,
and unstable if it grows: then inputs of higher rank never come near it. The growth rate of that
direction,

    lambda(k) = lim 1/l log |v_l|,   v the part outside the range of H_l,

is a Lyapunov exponent transverse to the law of rank `k`. It falls with `k`; the number of live
directions `k*` is the first `k` for which it is negative, and every input of rank `k*` or more ends
in the same law. Not in the paper, whose theorems assume one invariant law and inputs of full rank.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from runner.papers.batch_norm_rank.rank_chain.engines import RotatedChain


class ProbedChain(RotatedChain):
    """A chain with inputs of rank `K < d` and one infinitesimal direction `v` outside their range.

    To first order `v <- D^{-1} (v / gamma + W v)` with the row norms `D` of the chain. Then its
    part in the range of `G` is taken out, which only turns the samples; so `G^T v = 0`, and `W v`
    is `|v|` times a standard normal vector independent of `W G`.
    """

    _probe: Float[Tensor, "chains d 1"] | float = 0.0
    _log_growth: Float[Tensor, " chains"] | float = 0.0
    _layers = 0

    def step(self) -> None:
        """Advance chain and direction by one layer."""
        super().step()
        kick = torch.randn(self.norms.shape, generator=self.generator, dtype=self.norms.dtype)
        moved = self._probe * self.inverse_skips + kick.to(self.norms.device)
        v = outside_range(moved / self.norms, self.state)
        length = torch.linalg.vector_norm(v, dim=-2, keepdim=True)
        self._probe = v / length
        self._log_growth = self._log_growth + length.squeeze((-2, -1)).log()
        self._layers += 1

    def growth_rate(self) -> Float[Tensor, " chains"]:
        """Return `lambda(K)` of each chain in nats a layer, averaged over all its layers so far."""
        return self._log_growth / self._layers

    def forget(self) -> None:
        """Start the average anew, at the end of the burn-in."""
        self._log_growth, self._layers = 0.0, 0


def outside_range(
    v: Float[Tensor, "chains d 1"], G: Float[Tensor, "chains d K"]
) -> Float[Tensor, "chains d 1"]:
    """Return the part of `v` orthogonal to the columns of `G`."""
    Q = torch.linalg.qr(G).Q  # the columns of G may be nearly dependent: no normal equations
    return v - Q @ (Q.mT @ v)
