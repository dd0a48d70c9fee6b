"""Measure how many directions survive: perturb a network of rank k by one more direction.

A chain, the sequence of hidden layers, never raises the rank of its input (footnote 15). Inputs of
rank `k` therefore have a separate invariant distribution. It is stable if an infinitesimal
direction outside the range of the representations shrinks. It is unstable if the direction grows:
inputs of higher rank then stay away from rank k. The growth rate of the direction,

    lambda(k) = lim 1/l log |v_l|,   v the part outside the range of H_l,

is a Lyapunov exponent transverse to the distribution of rank `k`. It falls with `k`. The number of
surviving directions `k*` is the first `k` with a negative exponent. All inputs of rank `k*` or more
converge to the same distribution. This measurement is not in the paper. The paper's theorems assume
one invariant distribution and inputs of full rank.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from runner.papers.batch_norm_rank.rank_chain.engines import RotatedChain


class ProbedChain(RotatedChain):
    """Chains with inputs of rank `K < d`, and an infinitesimal direction `v` outside their range.

    To first order, a layer maps `v (d, 1)` to `D^{-1} (v / gamma + W v)`. The diagonal matrix D has
    the norms of the rows. The part of `v` in the range of the state `G` is then removed, since it
    only rotates the samples. Hence `G^T v = 0`, and `W v` is `|v|` times a standard normal vector
    independent of `W G`.
    """

    _probe: Float[Tensor, "chains d 1"] | float = 0.0
    _log_growth: Float[Tensor, " chains"] | float = 0.0
    _layers = 0

    def step(self) -> None:
        """Advance chains and directions by one layer."""
        super().step()
        kick = torch.randn(self.norms.shape, generator=self.generator, dtype=self.norms.dtype)
        moved = self._probe * self.inverse_skips + kick.to(self.norms.device)
        v = outside_range(moved / self.norms, self.state)
        length = torch.linalg.vector_norm(v, dim=-2, keepdim=True)
        self._probe = v / length
        self._log_growth = self._log_growth + length.squeeze((-2, -1)).log()
        self._layers += 1

    def growth_rate(self) -> Float[Tensor, " chains"]:
        """Return the growth rate `lambda(K)` of the direction in each chain, in nats per layer.

        The rate is averaged over all layers since the last call of `forget`.
        """
        return self._log_growth / self._layers

    def forget(self) -> None:
        """Restart the average of the growth rate, at the end of the burn-in."""
        self._log_growth, self._layers = 0.0, 0


def outside_range(
    v: Float[Tensor, "chains d 1"], G: Float[Tensor, "chains d K"]
) -> Float[Tensor, "chains d 1"]:
    """Return the part of `v` that is orthogonal to the columns of `G`."""
    Q = torch.linalg.qr(G).Q  # columns of G may be nearly dependent, so no normal equations
    return v - Q @ (Q.mT @ v)
