"""Figures 3a and 3b as the authors' code computes them: a Markov chain of M, not of H, in float64.

M = H H^T holds the second moments of the hidden representations H. The code is `code_fig_3_a.ipynb`
and `code_fig_3_b.ipynb` of github.com/jonaskohler/Batchnorm_prevents_rank_collpase. It differs from
the paper's text:

- 3a: M starts as the identity, and gamma is 0.01. Every 10 000th layer is measured. The plotted
  rank is the mean of a list with two numbers for each measurement: `matrix_rank(M)`, and the number
  of singular values of M above 1e-9.
- 3b: all inputs are one number, with noise of 1e-5. The weights have standard deviation 100 at
  gamma = 0.01, which is equivalent to gamma = 1. The plot shows the eigenvalues of M, which are the
  squares of the singular values of H.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.networks.spectra import svdvals

ABOVE = 1e-9
"""Threshold above which singular values of M are counted (3a)."""

NOISE = 1e-5
"""Standard deviation of the noise of the inputs (3b)."""

Covariances = Float[Tensor, "chains d d"]


def nearly_constant(chains: int, width: int, stream: torch.Generator) -> Covariances:
    """Return `M = H H^T` for each chain, where all inputs H are one number plus noise.

    The number is `x . x` with a Gaussian vector x, drawn for each chain. The noise is iid Gaussian
    with standard deviation NOISE. H has as many samples as rows, `width`.
    """
    x = torch.randn(chains, width, 1, generator=stream, dtype=torch.float64)
    noise = torch.randn(chains, width, width, generator=stream, dtype=torch.float64)
    H = x.mT @ x + NOISE * noise
    return H @ H.mT


def layers(M: Covariances, skip: float, stream: torch.Generator) -> Iterator[Covariances]:
    """Yield the second moments M after every layer, without end.

    A layer replaces M by `(I + gamma W) M (I + gamma W)^T` with Gaussian W. Then rows and columns
    are scaled so that the diagonal of M is one. M: the initial matrices. skip: gamma.
    """
    eye = torch.eye(M.shape[-1], dtype=M.dtype)
    while True:
        W = torch.empty(M.shape, dtype=M.dtype).normal_(generator=stream)
        A = (eye + skip * W).to(M.device)
        M = A @ M @ A.mT
        scale = M.diagonal(dim1=-2, dim2=-1).rsqrt()
        M = scale[..., None] * M * scale[..., None, :]
        yield M


def counted(M: Covariances) -> Int[Tensor, "2 chains"]:
    """Return `matrix_rank(M)` and the number of singular values of M above 1e-9, as two rows."""
    s = svdvals(M)
    rounding = s[:, :1] * M.shape[-1] * torch.finfo(M.dtype).eps
    return torch.stack([(s > rounding).sum(-1), (s > ABOVE).sum(-1)])
