"""Formulas of paper B: Batch Normalization Provably Avoids Rank Collapse for Randomly Initialised
Deep Networks.

Notation of the paper: `H (d, N)` holds the hidden representations of `N` samples,
`M = H H^T / N (d, d)` their second moments, and `H` is normalized if every row of `H` has root mean
square one: `diag(M) = 1` and `Tr M = d` (p.1, Eq. 8).

Errors in the paper, and their corrections here:

- (53), (54): the bracket should be `2 ||M||_F^2 + 8 (1 - alpha) Tr M^3`; with the printed minus the
  bound (55) does not follow.
- (55): the corrected (54) gives `8 (1 - alpha) E Tr M^3 <= 2 d^2`. A factor 4 is lost in (55), and
  a factor 2 in (50) and (58). `frobenius_bound` and `rank_bound_theorem` have both forms.
- (78): each power of `d` next to `gamma^2` is one too low (`||lambda||_2^2 = d^2 - 2 gamma^2 d (d -
  1)` to first order), hence `gamma^2 delta_F = O(-gamma^4 d^3)` in (79), not `O(-gamma^4 d^2)`.
- Theorem 14 assumes a unique invariant distribution. It is unique only for inputs of full rank: the
  chain never raises the rank, so each lower rank has a separate invariant distribution.
"""

from math import pi, sqrt

import mpmath
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.core.arrays import takes_arrays
from runner.core.errors import InputError

DIGITS = 50
"""Decimal digits that suffice for small differences of large numbers."""

HUGE = 1e8
"""Smallest gamma at which the skip connection is lost in the rounding of float32."""


RELU_GRADIENT_GROWTH = sqrt(pi / (pi - 1))
"""Growth of gradients per layer in wide ReLU networks with batch norm, from the last layer down.

A unit's output h = max(z, 0) has E h^2 = 1/2 and mean 1/sqrt(2 pi) over a large batch, because z is
standard normal. The next pre-activations, with weights N(0, 2/d), therefore have the variance
2 (1/2 - 1/(2 pi)) = 1 - 1/pi over the batch. Weights and ReLU preserve the norm of the gradient on
average. Batch normalization divides it by the standard deviation, sqrt(1 - 1/pi). Batch
normalization also removes two directions of the batch, which do not count if the batch is large.
Yang et al. 2019 (A Mean Field Theory of Batch Normalization) show that the gradients of batch
normalized networks grow exponentially for every initialization and activation.
"""


@takes_arrays()
def orthogonality_gap(
    rank_bound: float | Float[Tensor, "*stack"], samples: int
) -> float | Float[Tensor, "*stack"]:
    """Return the orthogonality gap `||H^T H / ||H||_F^2 - I / N||_F` of the columns of H (d, N).

    The gap is zero if the N columns, the samples, are orthogonal and equally long. The squared gap
    is `1/r - 1/N` with r = r(H) of Eq. (4), because `1/r = ||H^T H||_F^2 / ||H||_F^4`. Source:
    Daneshmand, Joudaki and Bach 2021 (Batch Normalization Orthogonalizes Representations in Deep
    Random Networks), Section 3.

    rank_bound: r(H), a number or one for each matrix. samples: N.
    """
    square = 1 / rank_bound - 1 / samples
    return square.clamp(min=0).sqrt() if isinstance(square, Tensor) else sqrt(max(0.0, square))


@takes_arrays()
def second_moment(H: Float[Tensor, "*stack d N"]) -> Float[Tensor, "*stack d d"]:
    """Return the second moments of the rows of H, `M(H) = H H^T / N` (Eq. 2)."""
    return H @ H.mT / H.shape[-1]


@takes_arrays()
def batch_norm(
    H: Float[Tensor, "*stack d N"], centred: bool = False
) -> Float[Tensor, "*stack d N"]:
    """Return `BN(H) = diag(M)^{-1/2} H` (Eq. 2) with `M = H H^T / N`.

    Every row of the result has root mean square one. A row of zeros becomes nan. centred: subtract
    the mean of each row first, like standard batch normalization; the paper omits this (Appendix
    C).
    """
    if centred:
        H = H - H.mean(dim=-1, keepdim=True)
    H = _of_order_one(H, -1)
    return H / H.square().mean(dim=-1, keepdim=True).sqrt()


@takes_arrays()
def soft_rank(H: Float[Tensor, "*stack d N"], tau: float) -> Int[Tensor, "*stack"]:
    """Return `rank_tau(H)`, the number of singular values s of H with `s^2 / N >= tau` (Eq. 3).

    Raises torch.linalg.LinAlgError if `H` is not finite.
    """
    return (torch.linalg.svdvals(H).square() / H.shape[-1] >= tau).sum(dim=-1)


@takes_arrays()
def rank_bound(H: Float[Tensor, "*stack d N"]) -> Float[Tensor, "*stack"]:
    """Return `r(H) = Tr(M)^2 / ||M||_F^2` (Eq. 4) with `M = H H^T / N`, a lower bound of the rank.

    Lemma 1: `rank(H) >= r(H)`, and `rank_tau(H) >= (1 - tau)^2 r(H)` for normalized `H`. `r` does
    not depend on the scale of `H` and is differentiable in `H`. It is nan if `H` is zero or not
    finite.
    """
    M = _smaller_gram(_of_order_one(H, (-2, -1)))
    return trace(M).square() / M.square().sum(dim=(-2, -1))


def _of_order_one(
    H: Float[Tensor, "*stack d N"], dims: int | tuple[int, int]
) -> Float[Tensor, "*stack d N"]:
    """Return each matrix `H` times a power of two, so that its largest entry over `dims` is near 1.

    The product is not rounded. Without this factor, fourth powers of float32 numbers leave the
    range of float32 below 1e-11 and above 1e9.
    """
    largest = H.detach().abs().amax(dim=dims, keepdim=True)
    largest = largest.clamp(min=torch.finfo(H.dtype).tiny)  # below tiny the power would overflow
    return H * (torch.frexp(largest).mantissa / largest)


def _smaller_gram(H: Float[Tensor, "*stack d N"]) -> Float[Tensor, "*stack k k"]:
    """Return the smaller of `H H^T / N` and `H^T H / N`, which share their non-zero eigenvalues."""
    d, N = H.shape[-2:]
    return (H @ H.mT if d <= N else H.mT @ H) / N


@takes_arrays()
def trace(M: Float[Tensor, "*stack d d"]) -> Float[Tensor, "*stack"]:
    """Return `Tr M` for a stack of matrices."""
    return M.diagonal(dim1=-2, dim2=-1).sum(dim=-1)


@takes_arrays()
def count_above(M: Float[Tensor, "stack k k"], tau: float) -> Float[Tensor, " stack"]:
    """Return the number of eigenvalues of each symmetric `M` that are at least `tau`.

    The eigenvalues are not computed. By Sylvester's law of inertia, the number equals the number of
    nonnegative pivots in `M - tau I = L D L^T`. Pivoting (Bunch-Kaufman) may leave 2 x 2 blocks in
    `D`. Each block has one eigenvalue of either sign and is marked by two negative entries of
    `pivots`. The number is nan if `M` is not finite.
    """
    shifted = M - tau * torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    LD, pivots, _ = torch.linalg.ldl_factor_ex(shifted)
    in_block = pivots < 0
    positive = (LD.diagonal(dim1=-2, dim2=-1) >= 0) & ~in_block
    count = positive.sum(dim=-1) + in_block.sum(dim=-1) // 2
    return count.to(M.dtype).where(M.isfinite().all(dim=-1).all(dim=-1), torch.nan)


@takes_arrays()
def regularity_terms(
    M: Float[Tensor, "*stack d d"],
) -> tuple[Float[Tensor, "*stack"], Float[Tensor, "*stack"]]:
    """Return `Tr(diag(M^2)^2)` and `Tr(M^3)` of second moments M, the terms of Definition 3.

    The ratio of their expectations is the regularity constant alpha.
    """
    M2 = M @ M
    return M2.diagonal(dim1=-2, dim2=-1).square().sum(dim=-1), (M2 * M).sum(dim=(-2, -1))


@takes_arrays()
def frobenius_change(M: Float[Tensor, "*stack d d"]) -> Float[Tensor, "*stack"]:
    """Return `delta_F(M)`, the leading change of `||M||_F^2` over one layer (Lemma 7, Eq. 43).

    M holds the second moments of normalized representations, and M_+ the second moments one layer
    later. With the weight gamma of the residual branch and random weights W,

        E_W ||M_+||_F^2 - ||M||_F^2 = gamma^2 delta_F(M) + O(gamma^3),
        delta_F(M) = 2 d^2 - 2 ||M||_F^2 - 8 Tr(M^3) + 8 Tr(diag(M^2)^2).
    """
    diagonal, cubic = regularity_terms(M)
    d = M.shape[-1]
    return 2 * d**2 - 2 * M.square().sum(dim=(-2, -1)) - 8 * cubic + 8 * diagonal


@takes_arrays()
def frobenius_change_of_spectrum(eigenvalues: Float[Tensor, "*stack d"]) -> Float[Tensor, "*stack"]:
    """Return `delta_F` of Lemma 7 if all rows of `M` have the same norm (Proposition 8, Eq. 45).

    The value then depends only on the eigenvalues lambda of `M`: `delta_F(lambda) = 2 d^2 - 2
    ||lambda||_2^2 - 8 ||lambda||_3^3 + 8 ||lambda||_2^4 / d`.
    """
    d = eigenvalues.shape[-1]
    square, cube = eigenvalues.square().sum(dim=-1), eigenvalues.pow(3).sum(dim=-1)
    return 2 * d**2 - 2 * square - 8 * cube + 8 * square.square() / d


def frobenius_bound(width: float, alpha: float, as_printed: bool = True) -> float:
    """Return the upper bound `d^{3/2} / sqrt(1 - alpha)` on `E ||M||_F^2` in deep layers (Eq. 50).

    The expectation is over the invariant distribution of the layers. width: d. alpha: regularity
    constant (Definition 3). as_printed: if false, return half the bound, because (55) loses a
    factor 4 under the root. Raises InputError unless `alpha < 1`.
    """
    if not alpha < 1:
        raise InputError(f"alpha={alpha}: Lemma 13 needs a regularity constant below one")
    return width**1.5 / sqrt(1 - alpha) * (1 if as_printed else 0.5)


def rank_bound_theorem(
    width: float, alpha: float, tau: float = 0.0, as_printed: bool = True
) -> float:
    """Return Theorem 14's lower bound on the mean of `rank_tau` over depth (Eq. 58).

    The bound is `(1 - tau)^2 sqrt((1 - alpha) d)`. At `tau = 0` it bounds the mean of `r`. width:
    d. alpha: regularity constant (Definition 3). as_printed: if false, return twice the bound,
    because (55) loses a factor 4 under the root. Raises InputError unless `alpha < 1`.
    """
    return (1 - tau) ** 2 * width**2 / frobenius_bound(width, alpha, as_printed)


def lyapunov_gap_ginibre(width: int) -> float:
    """Return the gap of the two largest Lyapunov exponents of products of Gaussian matrices.

    The product `W_l ... W_1` has iid standard Gaussian entries and no skip connections. Let sigma_1
    and sigma_2 be its largest singular values. The gap `lambda_1 - lambda_2` is the rate at which
    `log(sigma_1 / sigma_2)` grows with l, in nats per layer. At width d it is `(psi(d / 2) - psi((d
    - 1) / 2)) / 2` with the digamma function `psi` (Newman 1986). The paper cites Forrester [11]
    for the complex counterpart. Raises InputError for `width < 2`.
    """
    _check_two_values(width)
    with mpmath.workdps(DIGITS):  # the difference is about 1 / d
        first, second = (mpmath.psi(0, mpmath.mpf(n) / 2) for n in (width, width - 1))
        return float(first - second) / 2


def lyapunov_gap(
    width: int, skip: float, samples: int, generator: torch.Generator
) -> tuple[float, float]:
    """Return the gap of the two largest Lyapunov exponents, and its standard error.

    The exponents `lambda_1 >= lambda_2` describe products of matrices `A = I + gamma W` with
    Gaussian `W (d, d)`. The unit is nats per layer. width: d. skip: gamma. samples: number of Monte
    Carlo draws.

    Rotations `U A U^T` do not change the distribution of `A`. The growth of a vector's length and
    of a parallelogram's area are therefore iid over layers. The first two basis vectors are enough:
    `lambda_1 = E log |A e_1|` and `lambda_1 + lambda_2 = E log area(A e_1, A e_2)`. The
    expectations are means over draws of these two columns, in float64. Terms that are linear or
    quadratic in `W` with mean zero are subtracted (control variates). Raises InputError for `width
    < 2`.
    """
    _check_two_values(width)
    W = torch.empty(samples, width, 2, dtype=torch.float64)
    # Sums of numpy, unlike torch's, depend neither on threads nor on memory alignment.
    a, b = np.moveaxis(W.normal_(generator=generator).numpy(), -1, 0)
    x = a[:, 0] - b[:, 1]
    y = np.square(a).sum(axis=1) - np.square(b).sum(axis=1)
    # The gap does not depend on the scale; squares of a huge gamma would overflow.
    scale, identity = (skip, 1.0) if skip < HUGE else (1.0, 1 / skip)
    a, b = scale * a, scale * b
    a[:, 0] += identity
    b[:, 1] += identity
    across = b - ((a * b).sum(axis=1) / np.square(a).sum(axis=1))[:, None] * a
    gap = (np.log(np.square(a).sum(axis=1)) - np.log(np.square(across).sum(axis=1))) / 2
    return _controlled_mean(gap, x, y)


def _check_two_values(width: int) -> None:
    if width < 2:
        raise InputError(f"width={width}: a second singular value needs a width of at least 2")


def _controlled_mean(
    values: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]
) -> tuple[float, float]:
    """Return the control-variate mean of `values` and its standard error.

    x, y: control variates with mean zero; `values` are regressed on them.
    """
    dv, dx, dy = values - values.mean(), x - x.mean(), y - y.mean()
    xx, xy, yy = (dx * dx).mean(), (dx * dy).mean(), (dy * dy).mean()
    xv, yv = (dx * dv).mean(), (dy * dv).mean()
    determinant = xx * yy - xy**2
    slope_x, slope_y = (yy * xv - xy * yv) / determinant, (xx * yv - xy * xv) / determinant
    residual = dv - slope_x * dx - slope_y * dy
    mean = values.mean() - slope_x * x.mean() - slope_y * y.mean()
    return float(mean), float(residual.std(ddof=1)) / sqrt(len(values))
