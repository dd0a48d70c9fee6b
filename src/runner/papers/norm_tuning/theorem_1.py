"""Theorem 1 of paper A for one layer: gamma and beta with which two frozen layers equal one layer.

    W x + b = gamma2 * (W2 relu(gamma1 * (W1 x) + beta1)) + beta2     W1 (m, k), W2 (d, m), W (d, k)

W and b belong to the target. W1 and W2 are random and frozen. Leading axes R count independent
replicates. gamma and beta are columns, and all tensors are float64 on the CPU. The linear system
for gamma1 is solved by the pseudo-inverse, as in Appendix E of the paper. For large m, the module
`solvers` needs less time or memory.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from runner.core.arrays import takes_arrays


class Norm(NamedTuple):
    """Gamma and beta of the two normalization layers, as affine maps `z -> gamma z + beta`.

    m is the number of units of the first layer, d that of the second. R counts replicates.
    """

    gamma1: Float[Tensor, "*R m 1"]
    beta1: Float[Tensor, "*R m 1"]
    gamma2: Float[Tensor, "*R d 1"]
    beta2: Float[Tensor, "*R d 1"]

    def to(self, where: torch.device | torch.dtype) -> "Norm":
        """Return a copy on another device or in another precision.

        where: the device or the dtype.
        """
        return Norm(*(tensor.to(where) for tensor in self))


class Solved(NamedTuple):
    """Solutions of the linear systems of Theorem 1, with condition number and rank.

    gamma1 has one column for each target.
    """

    gamma1: Float[Tensor, "*R m targets"]
    condition_number: Float[Tensor, "*R"]  # largest / smallest singular value
    rank: Float[Tensor, "*R"]  # singular values above max(d k, m) machine epsilons of the largest


def khatri_rao(
    W2: Float[Tensor, "*R d m"] | Shaped[np.ndarray, "d m"],
    W1: Float[Tensor, "*R m k"] | Shaped[np.ndarray, "m k"],
) -> Float[Tensor, "*R d*k m"] | Shaped[np.ndarray, "d*k m"]:
    """Return the Khatri-Rao product K of two matrices W2 and W1^T (paper A, Lemma 1).

    With K, the matrix equation `W2 diag(gamma) W1 = W` is the linear system `K gamma = vec(W)`.
    Column j of K is the Kronecker product of `W2[:, j]` and `W1[j, :]`. Row `a k + b` of K belongs
    to the entry `W[a, b]`.
    """
    # Contiguous factors give a contiguous product, which is reshaped in place.
    rows = W1.mT.contiguous() if isinstance(W1, Tensor) else W1.T
    product = W2[..., :, None, :] * rows[..., None, :, :]
    return product.reshape(*W2.shape[:-2], -1, W2.shape[-1])


@takes_arrays(torch.float64)
def pseudo_inverse(
    W1: Float[Tensor, "*R m k"], W2: Float[Tensor, "*R d m"], targets: list[Tensor]
) -> Solved:
    """Solve `W2 diag(gamma1) W1 = W` for gamma1, for each target matrix W (*R, d, k).

    W1 and W2 are frozen weights. The equation is the linear system `K gamma1 = vec(W)` (paper A,
    Lemma 1), with the Khatri-Rao product K of W2 and W1^T. If the system has no solution, the
    result is the least squares solution. For a target with nan or inf, gamma1 is nan.
    """
    b = torch.stack(targets, -1).flatten(-3, -2)
    solved = torch.linalg.lstsq(khatri_rao(W2, W1), b.nan_to_num(0, 0, 0), driver="gelsd")
    sizes = solved.singular_values
    gamma1 = solved.solution + 0 * b.sum(-2, keepdim=True)
    return Solved(gamma1, sizes[..., 0] / sizes[..., -1], solved.rank)


@takes_arrays()
def row_norms(W: Float[Tensor, "*R rows columns"]) -> Float[Tensor, "*R rows 1"]:
    """Return the Euclidean norm of each row of a matrix.

    The norms are correct even if the squares of the entries are outside the range of float64.
    """
    size = size_of(W.abs().amax(dim=-1, keepdim=True))
    return (W / size).norm(dim=-1, keepdim=True) * size


@takes_arrays()
def size_of(largest: Float[Tensor, "*R"]) -> Float[Tensor, "*R"]:
    """Return a divisor after which products of a few numbers stay in the range of float64.

    largest: the largest absolute value of the numbers. The divisor is `largest`, or 1 if `largest`
    is between 1e-50 and 1e50, zero, or not finite.
    """
    usual = ((largest > 1e-50) & (largest < 1e50)) | (largest == 0) | ~largest.isfinite()
    return torch.where(usual, 1.0, largest)


@takes_arrays()
def set_shifts(
    W1: Float[Tensor, "*R m k"],
    W2: Float[Tensor, "*R d m"],
    gamma1: Float[Tensor, "*R m 1"],
    input_norm: float,
    bias: Float[Tensor, "*R d 1"] | float = 0.0,
) -> Norm:
    """Return gamma and beta with which two frozen layers compute `W2 diag(gamma1) W1 x + bias`.

    This is Lemma 7 of paper A. The shift `beta1_j = input_norm |gamma1_j| ||W1_j||` makes every
    hidden ReLU active for inputs x of norm at most `input_norm`. The second layer subtracts the
    shift: `gamma2 = 1` and `beta2 = bias - W2 beta1`.

    - W1, W2: frozen weights of the first and the second layer.
    - gamma1: scales of the first layer.
    - input_norm: the largest norm of an input, 1 in the paper.
    """
    beta1 = input_norm * gamma1.abs() * row_norms(W1)
    return Norm(gamma1, beta1, torch.ones_like(W2[..., :1]), bias - W2 @ beta1)
