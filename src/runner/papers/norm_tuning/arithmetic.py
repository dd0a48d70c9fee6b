"""Two arithmetics for the construction of Theorem 2: float64, and any number of digits.

Theorem 2 is a statement about real numbers. With narrow blocks its systems are so ill-conditioned
that float64 has too few digits; with 100 digits the same construction is exact. An arithmetic is a
class with the operations that the construction needs in addition to `+`, `*` and `@`.
"""

from typing import Any

import mpmath
import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from runner.papers.norm_tuning.solvers import Scales, solve_scales
from runner.papers.norm_tuning.theorem_1 import khatri_rao, row_norms

Exact = Shaped[np.ndarray, "..."]
"""A numpy array of mpmath numbers."""


class Float64:
    """Arithmetic of torch tensors in float64 on the CPU."""

    solve_scales = staticmethod(solve_scales)

    def exact(self, array: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return a copy of the array."""
        return array.clone()

    def least_norm(self, W: Float[Tensor, "d m"], b: Float[Tensor, " d"]) -> Float[Tensor, " m"]:
        """Return the x of least norm with `W x = b`, for W of rank d, by SVD."""
        return torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution[:, 0]

    def row_norms(self, M: Float[Tensor, "rows columns"]) -> Float[Tensor, " rows"]:
        """Return the Euclidean norms of the rows of M."""
        return row_norms(M)[:, 0]


class MultiPrecision:
    """Arithmetic of numpy arrays of mpmath numbers with `digits` decimal digits.

    The numbers have their precision as an attribute, so every operation on them has this precision,
    too. Systems of a few hundred unknowns take minutes, so d k must be small.
    """

    def __init__(self, digits: int) -> None:
        self.context = mpmath.MPContext()
        self.context.dps = digits

    def exact(self, array: Float[Tensor, "..."]) -> Exact:
        """Return the float64 numbers as mpmath numbers, without rounding."""
        return np.vectorize(self.context.mpf, otypes=[object])(array.numpy())

    def solve_scales(self, W1: Exact, W2: Exact, target: Exact) -> Scales:
        """Solve the square system of `solvers.solve_scales` by Gauss-Jordan elimination.

        If the system is singular at this precision, gamma is zero, the rank is 0 and the condition
        number is infinite.
        """
        K = khatri_rao(W2, W1)
        inverse = self._inverse(K)
        if inverse is None:
            return Scales(K[0] * 0, float("inf"), 0, K.shape, "mpmath")
        sizes = [self._size(M) for M in (K, inverse)]
        norms = [
            np.linalg.norm((M / size).astype(float), 2)
            for M, size in zip((K, inverse), sizes, strict=True)
        ]
        condition_number = float(norms[0] * norms[1]) * float(sizes[0] * sizes[1])
        gamma = inverse @ target.reshape(-1)
        return Scales(gamma, condition_number, len(K), K.shape, "mpmath")

    def least_norm(self, W: Exact, b: Exact) -> Exact:
        """Return `W^T (W W^T)^{-1} b`. The squared condition number costs a few of many digits."""
        return W.T @ (self._inverse(W @ W.T) @ b)

    def row_norms(self, M: Exact) -> Exact:
        """Return the Euclidean norms of the rows of M."""
        return np.sqrt((M * M).sum(axis=1))

    def _size(self, M: Exact) -> Any:
        """Return a divisor that brings the largest entry well into the range of a float."""
        largest = abs(M).max()
        return self.context.mpf(1) if 1e-100 < largest < 1e100 else largest

    def _inverse(self, K: Exact) -> Exact | None:
        """Return the inverse of K by elimination with row pivoting, or None if K is singular."""
        n = K.shape[0]
        table = np.concatenate([K, self.exact(torch.eye(n, dtype=torch.float64))], axis=1)
        negligible = abs(K).max() * self.context.mpf(10) ** (10 - self.context.dps)
        for i in range(n):
            pivot = i + int(np.argmax(abs(table[i:, i])))
            if abs(table[pivot, i]) <= negligible:
                return None
            table[[i, pivot]] = table[[pivot, i]]
            table[i] = table[i] / table[i, i]
            factors = table[:, i].copy()
            factors[i] = self.context.mpf(0)
            # Columns left of i are unit vectors already.
            table[:, i:] = table[:, i:] - factors[:, None] * table[i, i:]
        return table[:, n:]


Arithmetic = Float64 | MultiPrecision
FLOAT64 = Float64()
