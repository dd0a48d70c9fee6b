"""Two arithmetics for the construction of Theorem 2: float64, and any number of decimal digits.

Theorem 2 of paper A is a statement about real numbers. If the layers are narrow, the linear systems
of its construction are so ill-conditioned that float64 has too few digits. With 100 digits the same
construction is exact. An arithmetic is a class with the operations that the construction needs in
addition to `+`, `*` and `@`.
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
    """Arithmetic in float64, with torch tensors on the CPU."""

    solve_scales = staticmethod(solve_scales)

    def exact(self, array: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the array as numbers of this arithmetic: a copy in float64."""
        return array.clone()

    def least_norm(self, W: Float[Tensor, "d m"], b: Float[Tensor, " d"]) -> Float[Tensor, " m"]:
        """Return the vector x of least Euclidean norm that solves `W x = b`.

        W must have rank d, the number of its rows.
        """
        return torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution[:, 0]

    def row_norms(self, M: Float[Tensor, "rows columns"]) -> Float[Tensor, " rows"]:
        """Return the Euclidean norm of each row of M."""
        return row_norms(M)[:, 0]


class MultiPrecision:
    """Arithmetic with a chosen number of decimal digits, with numpy arrays of mpmath numbers.

    The argument `digits` is the number of decimal digits. An mpmath number stores its precision.
    Every operation on the number therefore has this precision, too. A linear system of a few
    hundred unknowns takes minutes, so only small systems can be solved.
    """

    def __init__(self, digits: int) -> None:
        self.context = mpmath.MPContext()
        self.context.dps = digits

    def exact(self, array: Float[Tensor, "..."]) -> Exact:
        """Return a float64 array as mpmath numbers of this arithmetic, without rounding."""
        return np.vectorize(self.context.mpf, otypes=[object])(array.numpy())

    def solve_scales(self, W1: Exact, W2: Exact, target: Exact) -> Scales:
        """Solve `W2 diag(gamma) W1 = target` for the vector gamma by Gauss-Jordan elimination.

        W1 (m, k) and W2 (d, m) are the weights of two layers, `target` is a matrix (d, k). The
        system must have as many unknowns as equations, m = d k. If the system is singular at this
        precision, gamma is zero, the rank is 0 and the condition number is infinite.
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
        """Return the vector x of least Euclidean norm that solves `W x = b`.

        The formula is `x = W^T (W W^T)^{-1} b`. It squares the condition number, which costs a few
        of the many digits. W must have linearly independent rows.
        """
        return W.T @ (self._inverse(W @ W.T) @ b)

    def row_norms(self, M: Exact) -> Exact:
        """Return the Euclidean norm of each row of M."""
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
