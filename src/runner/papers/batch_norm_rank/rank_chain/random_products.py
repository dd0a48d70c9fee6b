"""Products of random matrices without normalization (paper B, Section 3.2, Lemma 3)."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from runner.networks.spectra import svdvals
from runner.papers.batch_norm_rank.rank_chain.engines import fill, gaussian_inputs


def collapse(
    chains: int,
    width: int,
    skip: float,
    law: str,
    layers: int,
    generator: Generator,
    device: torch.device,
) -> Iterator[tuple[Float[Tensor, " chains"], Float[Tensor, " chains"]]]:
    """Yield log(sigma_2 / sigma_1) of a random product and the size of its last step, by layer.

    The product `B_l` of matrices `I + gamma W_k` (Eq. 6) is applied to Gaussian `X (d, d)`. sigma_1
    and sigma_2 are the largest singular values of `B_l X`. With the scaled matrix `H~_l = B_l X /
    ||B_l X||_F`, the step is `||H~_l - H~_{l-1}||_F`.

    chains: number of independent products. width: d. skip: gamma; inf: `W_k` without the identity.
    law: distribution of the weights.

    The matrix is divided by its norm at every layer, which prevents overflow and does not change
    the ratio. Ratios below about 1e-15 are rounding errors of float64. Raises InputError for an
    unknown distribution.
    """
    H = gaussian_inputs(chains, width, width, generator, torch.float64).to(device)
    H = H / _norm(H)
    for _ in range(layers):
        H_before = H
        W = fill(torch.empty(H.shape, dtype=H.dtype), law, generator)
        H = W.to(device) @ H + H / skip
        H = H / _norm(H)
        sigma = svdvals(H)
        yield (sigma[:, 1] / sigma[:, 0]).log(), _norm(H - H_before).squeeze((-2, -1))


def _norm(H: Float[Tensor, "chains d N"]) -> Float[Tensor, "chains 1 1"]:
    return torch.linalg.matrix_norm(H, keepdim=True)
