"""Two arithmetics for the deep construction of paper A: float64, and as many digits as needed.

Theorem 2 is a statement about real numbers. For narrow blocks its systems are so ill-conditioned
that float64 has no digits left; with 100 digits the same construction is exact again.
"""

import time
from typing import Protocol, runtime_checkable

import mpmath
import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from runner.papers.norm_tuning.network import Matrix, Vector
from runner.papers.norm_tuning.solvers import Scales, khatri_rao, solve_scales

LONGEST_TIMED_ROW = 10_000

Exact = Shaped[np.ndarray, "..."]
"""A numpy array of mpmath numbers."""


@runtime_checkable
class Arithmetic(Protocol):
    """What the deep construction needs besides `+`, `*` and `@`."""

    def exact(self, array: Float[Tensor, "..."]) -> Float[Tensor, "..."] | Exact:
        """The float64 numbers of `array` in this arithmetic, without rounding; a new array."""

    def solve_scales(self, W1: Matrix, W2: Matrix, target: Matrix) -> Scales:
        """Solve `W2 diag(gamma) W1 = target`; shapes as in `solvers.solve_scales`."""

    def least_norm(self, W: Matrix, b: Vector) -> Vector:
        """The smallest x with `W x = b`, for W (d, m) of rank d."""

    def row_norms(self, M: Matrix) -> Vector:
        """Euclidean norms of the rows of M."""


class Float64:
    """Torch tensors in float64 on the CPU."""

    def exact(self, array: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """A copy."""
        return array.clone()

    def solve_scales(
        self, W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"], target: Float[Tensor, "d k"]
    ) -> Scales:
        """See `solvers.solve_scales`."""
        return solve_scales(W1, W2, target)

    def least_norm(self, W: Float[Tensor, "d m"], b: Float[Tensor, " d"]) -> Float[Tensor, " m"]:
        """Least squares by SVD."""
        return torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution[:, 0]

    def row_norms(self, M: Float[Tensor, "rows columns"]) -> Float[Tensor, " rows"]:
        """Euclidean norms of the rows of M."""
        return M.norm(dim=1)


FLOAT64 = Float64()


class MultiPrecision:
    """Numpy arrays of mpmath numbers with so many decimal `digits`.

    The numbers carry their precision with them, so every operation on them has it too. Systems of a
    few hundred unknowns take minutes: this is for small d k.
    """

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.context = mpmath.MPContext()
        self.context.dps = digits

    def exact(self, array: Float[Tensor, "..."]) -> Exact:
        """The same numbers as an array of mpmath numbers."""
        return np.vectorize(self.context.mpf, otypes=[object])(array.numpy())

    def solve_scales(self, W1: Exact, W2: Exact, target: Exact) -> Scales:
        """Solve the square system by Gauss-Jordan elimination with row pivoting.

        Zero scales, rank 0 and an infinite condition number if it is singular to these digits.
        """
        K = khatri_rao(W2, W1)
        n = K.shape[0]
        inverse = self._inverse(K)
        if inverse is None:
            return Scales(K[0] * 0, float("inf"), 0, K.shape, "mpmath")
        condition_number = _norm(K) * _norm(inverse)
        return Scales(inverse @ target.reshape(-1), condition_number, n, K.shape, "mpmath")

    def seconds(self, n: int) -> float:
        """How long `solve_scales` takes for n equations: n^2 row operations, of which one is timed.

        Three quarters of their columns are not zero yet.
        """
        row = self.exact(torch.rand(2 * min(n, LONGEST_TIMED_ROW), dtype=torch.float64))
        start = time.perf_counter()
        row = row - row[0] * row
        return 0.75 * n**2 * (time.perf_counter() - start) * (2 * n / len(row))

    def least_norm(self, W: Exact, b: Exact) -> Exact:
        """`W^T (W W^T)^{-1} b`: squaring the condition number costs a few of very many digits."""
        return W.T @ (self._inverse(W @ W.T) @ b)

    def row_norms(self, M: Exact) -> Exact:
        """Euclidean norms of the rows of M."""
        return np.sqrt((M * M).sum(axis=1))

    def _inverse(self, K: Exact) -> Exact | None:
        n = K.shape[0]
        table = np.concatenate([K, self.exact(torch.eye(n, dtype=torch.float64))], axis=1)
        negligible = abs(K).max() * self.context.mpf(10) ** (10 - self.digits)
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


def _norm(K: Exact) -> float:
    """Spectral norm, to double precision."""
    return float(np.linalg.norm(K.astype(np.float64), 2))
