"""Scales that turn frozen weights into a target matrix: the Khatri-Rao system of paper A, Lemma 1.

The equation `W2 diag(gamma) W1 = W*` is linear in gamma: `K gamma = vec(W*)` with the Khatri-Rao
product `K = W2 (.) W1^T`, whose column j is `W2[:, j] (x) W1[j, :]`. Three ways to solve it, each
where it is the best one; none of them forms `K^T K`, which would square the condition number.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from scipy.linalg import LinAlgWarning, lu_factor, lu_solve
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, lsmr
from torch import Tensor

from runner.papers.norm_tuning.network import Vector

EPSILON = float(np.finfo(np.float64).eps)
REFINEMENTS = 2
LSMR_STEPS = 500  # about 100 are enough for dense Gaussian weights with m = 2 d k, at any d
LSMR_SOLVED = (0, 1, 4)  # reasons to stop; the others: no solution, ill-conditioned, out of steps
LANCZOS_CONDITION = 1e6  # eigenvalues of the Gram matrix below 1e-16 of the largest are rounding
LANCZOS_TOLERANCE = 1e-3  # residual; the singular values are then right to about 6 digits
LANCZOS_VECTORS = 80


@dataclass(frozen=True)
class Scales:
    """Solution of `K gamma = vec(W*)` and what the system looked like; iterations of LSMR only.

    `condition_number` is sigma_max / sigma_min over the min(d k, m) singular values of K (inf if
    the smallest is zero) and `numerical_rank` counts those above `sigma_max max(d k, m) eps`.
    """

    gamma: Vector
    condition_number: float
    numerical_rank: int
    shape: tuple[int, int]
    solver: str
    iterations: int = 0

    @property
    def full_rank(self) -> bool:
        """Whether K (d k, m) has rank min(d k, m): the statement of Lemma 2."""
        return self.numerical_rank == min(self.shape)

    @property
    def solvable(self) -> bool:
        """Whether every target matrix can be reached exactly: K has rank d k."""
        return self.numerical_rank == self.shape[0]


def khatri_rao(
    W2: Float[Tensor, "d m"] | Shaped[np.ndarray, "d m"],
    W1: Float[Tensor, "m k"] | Shaped[np.ndarray, "m k"],
) -> Float[Tensor, "d*k m"] | Shaped[np.ndarray, "d*k m"]:
    """Columnwise Kronecker product `W2 (.) W1^T`: column j is `W2[:, j] (x) W1[j, :]` (Lemma 1).

    Row `a k + b` belongs to the entry `W*[a, b]` (row-major vec).
    """
    # Contiguous factors give a contiguous product, which is reshaped in place.
    rows = W1.T.contiguous() if isinstance(W1, Tensor) else W1.T
    return (W2[:, None, :] * rows[None, :, :]).reshape(-1, W2.shape[1])


def solve_scales(
    W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"], target: Float[Tensor, "d k"]
) -> Scales:
    """Solve `W2 diag(gamma) W1 = target` for gamma (paper A, Lemma 1 and 2).

    - m = d k and K of full rank: LU and two steps of iterative refinement; the unique solution.
    - m >= 2 d k and K of full rank: LSMR on the operator `gamma -> W2 diag(gamma) W1`; K is never
      formed.
    - else, and where those two meet a K that is rank-deficient or nearly so: minimum-norm least
      squares (SVD).

    A system that is not finite has the solution nan, and rank 0. All tensors are float64 on the
    CPU.
    """
    m, dk = W1.shape[0], target.numel()
    if not all(bool(each.isfinite().all()) for each in (W1, W2, target)):
        return Scales(W1.new_full((m,), nan), nan, 0, (dk, m), "none")
    scales = None
    if m >= 2 * dk:
        scales = _solve_lsmr(W1, W2, target)
    elif m == dk:
        scales = _solve_lu(W1, W2, target)
    return scales or _solve_least_squares(W1, W2, target)


def _solve_lu(
    W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"], target: Float[Tensor, "d k"]
) -> Scales | None:
    """LU with iterative refinement of the square system, or None if K is numerically singular."""
    n = target.numel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # an exact zero pivot is looked for below
        # K^T is the column-major view of K, so LAPACK can factor it in place: one matrix, no copy.
        factors = lu_factor(khatri_rao(W2, W1).numpy().T, overwrite_a=True, check_finite=False)
    if not np.all(np.diagonal(factors[0])):
        return None

    def solve(b: np.ndarray) -> np.ndarray:
        return lu_solve(factors, b, trans=1, check_finite=False)

    def solve_transposed(b: np.ndarray) -> np.ndarray:
        return lu_solve(factors, b, trans=0, check_finite=False)

    operator = _operator(W1, W2)
    try:
        largest = _largest_singular_value(n, operator.rmatvec, operator.matvec)
        smallest_inverse = _largest_singular_value(n, solve_transposed, solve)
    except (ArpackError, np.linalg.LinAlgError):  # the inverse overflows
        return None
    condition_number = largest * smallest_inverse
    if not condition_number < 1 / (n * EPSILON):
        return None
    b = target.numpy().reshape(-1)
    gamma = solve(b)
    for _ in range(REFINEMENTS):
        gamma = gamma + solve(b - operator.matvec(gamma))
    return Scales(torch.from_numpy(gamma), condition_number, n, (n, n), "lu")


def _solve_least_squares(
    W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"], target: Float[Tensor, "d k"]
) -> Scales:
    """Minimum-norm least squares by the singular values of K (LAPACK gelsd)."""
    shape = (target.numel(), W1.shape[0])
    K = khatri_rao(W2, W1)
    solution = torch.linalg.lstsq(
        K, target.reshape(-1, 1), rcond=max(shape) * EPSILON, driver="gelsd"
    )
    singular_values = solution.singular_values
    largest, smallest = float(singular_values.max()), float(singular_values.min())
    condition_number = largest / smallest if smallest > 0 else float("inf")
    gamma = solution.solution[:, 0]
    return Scales(gamma, condition_number, int(solution.rank), shape, "least_squares")


def structured_lsmr(
    W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"], target: Float[Tensor, "d k"]
) -> tuple[Float[Tensor, " m"], int, bool]:
    """LSMR without K, started at zero (so of minimum norm): gamma, iterations, solved or not.

    One iteration costs 4 m d k operations; memory is that of the weights.
    """
    gamma, reason, iterations, *_ = lsmr(
        _operator(W1, W2),
        target.numpy().reshape(-1),
        atol=EPSILON,
        btol=EPSILON,
        maxiter=LSMR_STEPS,
    )
    return torch.from_numpy(gamma), iterations, reason in LSMR_SOLVED


def _solve_lsmr(
    W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"], target: Float[Tensor, "d k"]
) -> Scales | None:
    """LSMR, or None if it does not solve the system or K is not clearly of full rank.

    K has rank d k exactly if it reaches any right-hand side, a random one with probability one. (No
    iteration from `K K^T` shows a null space: it starts with a product, which has no part in it.)
    """
    gamma, iterations, solved = structured_lsmr(W1, W2, target)
    anything = torch.from_numpy(np.random.default_rng(0).standard_normal(tuple(target.shape)))
    if not solved or not structured_lsmr(W1, W2, anything)[2]:
        return None
    try:
        largest, smallest = _extreme_singular_values(_operator(W1, W2))
    except ArpackError:
        return None
    if not largest < LANCZOS_CONDITION * smallest:
        return None
    dk, m = target.numel(), W1.shape[0]
    return Scales(gamma, largest / smallest, dk, (dk, m), "lsmr", iterations)


def _operator(W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"]) -> LinearOperator:
    """K as the map `gamma -> vec(W2 diag(gamma) W1)` and its transpose `R -> diag(W2^T R W1^T)`."""
    d, k = W2.shape[0], W1.shape[1]
    scaled, projected = torch.empty_like(W2), torch.empty_like(W1)  # fresh ones cost a third more

    def matvec(gamma: np.ndarray) -> np.ndarray:
        torch.mul(W2, torch.from_numpy(gamma.reshape(-1)), out=scaled)
        return (scaled @ W1).numpy().reshape(-1)

    def rmatvec(residual: np.ndarray) -> np.ndarray:
        torch.mm(W2.T, torch.from_numpy(residual.reshape(d, k)), out=projected)
        return projected.mul_(W1).sum(dim=1).numpy()

    return LinearOperator((d * k, W1.shape[0]), matvec, rmatvec, dtype=np.float64)


def _lanczos(operator: LinearOperator, **options: Any) -> np.ndarray:
    """Extreme eigenvalues of a symmetric operator, in rising order; options: of `eigsh`.

    The vectors that it starts with, and starts again with, are fixed: equal runs give equal
    numbers.
    """
    random = np.random.default_rng(0)
    return eigsh(
        operator,
        v0=random.standard_normal(operator.shape[0]),
        rng=random,
        tol=LANCZOS_TOLERANCE,
        return_eigenvectors=False,
        **options,
    )


def _largest_singular_value(n: int, first: Callable, second: Callable) -> float:
    """Largest singular value of the n x n operator with `second(first(.))` its Gram operator."""
    if n < 3:  # too small for Lanczos
        gram = np.stack([second(first(column)) for column in np.eye(n)], axis=1)
        return float(np.sqrt(np.linalg.eigvalsh(gram)[-1]))
    gram = LinearOperator((n, n), lambda v: second(first(v.reshape(-1))), dtype=np.float64)
    return float(np.sqrt(_lanczos(gram, k=1)[0]))


def _extreme_singular_values(operator: LinearOperator) -> tuple[float, float]:
    """Largest and smallest singular value of a wide, well-conditioned operator (n, m), n <= m."""
    n = operator.shape[0]
    if n < 4:  # too small for Lanczos
        gram = np.stack([operator.matvec(operator.rmatvec(c)) for c in np.eye(n)], axis=1)
        eigenvalues = np.linalg.eigvalsh(gram)
    else:
        gram = LinearOperator(
            (n, n), lambda v: operator.matvec(operator.rmatvec(v)), dtype=np.float64
        )
        eigenvalues = _lanczos(
            gram, k=2, which="BE", ncv=min(n, LANCZOS_VECTORS), maxiter=LSMR_STEPS
        )
    smallest, largest = np.sqrt(np.maximum(eigenvalues, 0))[[0, -1]]
    return float(largest), float(smallest)
