"""Figures 3a and 3b as the authors' code computes them: a chain of M, not of H, in float64.

`code_fig_3_a.ipynb` and `code_fig_3_b.ipynb` of
github.com/jonaskohler/Batchnorm_prevents_rank_collpase:

- 3a: M starts as the identity, gamma is 0.01; every 10 000th layer is looked at; what is drawn as
  the rank is the mean of one list with two numbers for each look, `matrix_rank(M)` and how many
  singular values of M are above 1e-9;
- 3b: the inputs are one number everywhere, with noise of 1e-5; weights of deviation 100 at gamma =
  0.01, that is gamma = 1; what is drawn are the eigenvalues of M, squares of singular values of H.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.networks.spectra import svdvals

ABOVE = 1e-9
"""Singular values of M that count (3a)."""

NOISE = 1e-5
"""Of the inputs (3b)."""

Covariances = Float[Tensor, "chains d d"]


def nearly_constant(chains: int, width: int, stream: torch.Generator) -> Covariances:
    """Return `M = H H^T` of `H = x . x + noise`: x is a vector, so that `x . x` is a number."""
    x = torch.randn(chains, width, 1, generator=stream, dtype=torch.float64)
    noise = torch.randn(chains, width, width, generator=stream, dtype=torch.float64)
    H = x.mT @ x + NOISE * noise
    return H @ H.mT


def layers(M: Covariances, skip: float, stream: torch.Generator) -> Iterator[Covariances]:
    """Yield M after every layer: `M <- (I + gamma W) M (I + gamma W)^T`, scaled to `M_ii = 1`."""
    eye = torch.eye(M.shape[-1], dtype=M.dtype)
    while True:
        W = torch.empty(M.shape, dtype=M.dtype).normal_(generator=stream)
        A = (eye + skip * W).to(M.device)
        M = A @ M @ A.mT
        scale = M.diagonal(dim1=-2, dim2=-1).rsqrt()
        M = scale[..., None] * M * scale[..., None, :]
        yield M


def counted(M: Covariances) -> Int[Tensor, "2 chains"]:
    """Return `matrix_rank(M)`, and the number of singular values above 1e-9."""
    s = svdvals(M)
    rounding = s[:, :1] * M.shape[-1] * torch.finfo(M.dtype).eps
    return torch.stack([(s > rounding).sum(-1), (s > ABOVE).sum(-1)])
