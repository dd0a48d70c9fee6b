"""Three solvers for the linear systems of Theorem 1 of paper A, each used where it is fastest.

The unknowns are gamma, and the matrix of the system is the Khatri-Rao matrix K (d k, m), see
`theorem_1.khatri_rao`. The simplest solver is the pseudo-inverse in `theorem_1`, a singular value
decomposition of K. At d k = m = 3,600 it takes 17 s on one core, while an LU factorization takes
1.2 s. For the largest systems of study `constructions` the pseudo-inverse would take a gigabyte and
minutes each. No solver computes `K^T K`, because this would square the condition number.
"""

from collections.abc import Callable
from inspect import signature
from math import nan
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.linalg import lu_solve
from scipy.linalg.lapack import dgetrf
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, lsmr
from torch import Tensor

from runner.core.arrays import takes_arrays
from runner.papers.norm_tuning.network import Vector
from runner.papers.norm_tuning.theorem_1 import khatri_rao, pseudo_inverse, size_of

EPSILON = float(np.finfo(np.float64).eps)
REFINEMENTS = 2
LSMR_STEPS = 500  # about 100 are enough for dense Gaussian weights with m = 2 d k, at any d
LSMR_SOLVED = (0, 1, 4)  # exit codes of success; others: no solution, ill-conditioned, out of steps
LANCZOS_CONDITION = 1e6  # eigenvalues of the Gram matrix below 1e-16 of the largest are rounding
LANCZOS_TOLERANCE = 1e-3  # residual; the singular values are then right to about 6 digits
LANCZOS_VECTORS = 80


class Scales(NamedTuple):
    """The solution gamma of the linear system `K gamma = vec(W*)` of Theorem 1 of paper A.

    K (d k, m) is the Khatri-Rao matrix of the frozen weights, and W* (d, k) is the target matrix.

    - gamma: the solution, m numbers.
    - condition_number: the largest singular value of K divided by the smallest of its min(d k, m)
      singular values; inf if the smallest is zero.
    - numerical_rank: number of singular values above `max(d k, m) eps` times the largest one, with
      the machine epsilon eps.
    - shape: (d k, m), the shape of K.
    - solver: name of the solver.
    """

    gamma: Vector
    condition_number: float
    numerical_rank: int
    shape: tuple[int, int]
    solver: str

    @property
    def solvable(self) -> bool:
        """Return whether K has rank d k, so that every target matrix has a solution."""
        return self.numerical_rank == self.shape[0]


@takes_arrays(torch.float64, detach=True)
def solve_scales(
    W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"], target: Float[Tensor, "d k"]
) -> Scales:
    """Solve `W2 diag(gamma) W1 = target` for the vector gamma (paper A, Lemmas 1 and 2).

    W1 and W2 are the frozen weights of two layers. With their Khatri-Rao matrix K (d k, m), the
    system is `K gamma = vec(target)`. The number m of unknowns decides which solver is used:

    - m = d k and K of full rank: LU and two steps of iterative refinement give the unique solution.
    - m >= 2 d k and K of full rank: LSMR gives the solution of least norm, without computing K.
    - in all other cases, and if LU or LSMR finds that K is nearly rank-deficient: the
      pseudo-inverse.

    If a matrix has an entry that is not finite, the solution is nan and its rank is 0. All tensors
    are float64 on the CPU.
    """
    m, dk = W1.shape[0], target.numel()
    shape = (dk, m)
    if not all(bool(W.isfinite().all()) for W in (W1, W2, target)):
        return Scales(W1.new_full((m,), nan), nan, 0, shape, "none")
    sizes = [size_of(W.abs().max()) for W in (W1, W2, target)]
    if any(size != 1 for size in sizes):
        scales = solve_scales(*(W / size for W, size in zip((W1, W2, target), sizes, strict=True)))
        return scales._replace(gamma=scales.gamma / sizes[0] * sizes[2] / sizes[1])
    if m >= 2 * dk and (scales := _by_lsmr(W1, W2, target)):
        return scales
    if m == dk and (scales := _by_lu(W1, W2, target)):
        return scales
    gammas, condition_number, rank = pseudo_inverse(W1, W2, [target])
    return Scales(gammas[:, 0], float(condition_number), int(rank), shape, "least_squares")


def _by_lu(
    W1: Float[Tensor, "n k"], W2: Float[Tensor, "d n"], target: Float[Tensor, "d k"]
) -> Scales | None:
    """Return the solution by LU with iterative refinement, or None if K is nearly singular."""
    K, n = _operator(W1, W2), target.numel()
    # K^T is the column-major view of K, so LAPACK can factor it in place: one matrix, no copy.
    *factors, zero_pivot = dgetrf(khatri_rao(W2, W1).numpy().T, overwrite_a=True)
    if zero_pivot:
        return None

    def solve(b: np.ndarray, transposed: int = 1) -> np.ndarray:
        return lu_solve(factors, b, trans=transposed, check_finite=False)

    try:
        largest = _singular_values(n, lambda v: K.matvec(K.rmatvec(v)), k=1)[-1]
        of_inverse = _singular_values(n, lambda v: solve(solve(v, 0)), k=1)[-1]
    except (ArpackError, np.linalg.LinAlgError):  # the inverse overflows
        return None
    if not largest * of_inverse < 1 / (n * EPSILON):
        return None
    b = target.numpy().reshape(-1)
    gamma = solve(b)
    for _ in range(REFINEMENTS):
        gamma = gamma + solve(b - K.matvec(gamma))
    return Scales(torch.from_numpy(gamma), float(largest * of_inverse), n, (n, n), "lu")


def _by_lsmr(
    W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"], target: Float[Tensor, "d k"]
) -> Scales | None:
    """Return the solution by LSMR, or None if LSMR ends early or K may not have full rank.

    K has rank d k if and only if every right-hand side has a solution. A random right-hand side
    decides this with probability one. (Iterations of `K K^T` cannot: their vectors have no
    component in a null space.)
    """
    gamma, _, solved = structured_lsmr(W1, W2, target)
    anything = torch.from_numpy(np.random.default_rng(0).standard_normal(tuple(target.shape)))
    if not solved or not structured_lsmr(W1, W2, anything)[2]:
        return None
    K, n = _operator(W1, W2), target.numel()
    ends = {"k": 2, "which": "BE", "ncv": min(n, LANCZOS_VECTORS), "maxiter": LSMR_STEPS}
    try:
        sizes = _singular_values(n, lambda v: K.matvec(K.rmatvec(v)), **ends)
    except ArpackError:
        return None
    smallest, largest = map(float, sizes[[0, -1]])
    if not largest < LANCZOS_CONDITION * smallest:
        return None
    return Scales(gamma, largest / smallest, n, K.shape, "lsmr")


@takes_arrays(torch.float64, detach=True)
def structured_lsmr(
    W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"], target: Float[Tensor, "d k"]
) -> tuple[Float[Tensor, " m"], int, bool]:
    """Solve `W2 diag(gamma) W1 = target` for the gamma of least norm, by the iterative solver LSMR.

    The matrix of the system is not computed. One iteration costs 4 m d k operations, and no array
    is larger than the weights. Returns gamma, the number of iterations, and whether LSMR converged.
    """
    options = {"atol": EPSILON, "btol": EPSILON, "maxiter": LSMR_STEPS}
    b = target.numpy().reshape(-1)
    gamma, reason, iterations, *_ = lsmr(_operator(W1, W2), b, **options)
    return torch.from_numpy(gamma), iterations, reason in LSMR_SOLVED


def _operator(W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"]) -> LinearOperator:
    """Return the linear operator that maps gamma to `vec(W2 diag(gamma) W1)`.

    Its adjoint maps a matrix R to the diagonal of `W2^T R W1^T`.
    """
    d, k = W2.shape[0], W1.shape[1]
    scaled, projected = torch.empty_like(W2), torch.empty_like(W1)  # new arrays cost a third more

    def matvec(gamma: np.ndarray) -> np.ndarray:
        torch.mul(W2, torch.from_numpy(gamma.reshape(-1)), out=scaled)
        return (scaled @ W1).numpy().reshape(-1)

    def rmatvec(residual: np.ndarray) -> np.ndarray:
        torch.mm(W2.T, torch.from_numpy(residual.reshape(d, k)), out=projected)
        return projected.mul_(W1).sum(dim=1).numpy()

    return LinearOperator((d * k, W1.shape[0]), matvec, rmatvec, dtype=np.float64)


def _singular_values(n: int, gram: Callable, **options: Any) -> np.ndarray:
    """Return some singular values of a matrix, in ascending order, by the Lanczos iteration.

    n: number of rows. gram: multiplies a vector by the Gram matrix (n, n) of the rows. options:
    arguments of `eigsh`. For n up to 3 all values are returned. The initial vectors are fixed, so
    equal runs give equal numbers. SciPy before 1.17 fixes only the first vector.
    """
    if n < 4:
        eigenvalues = np.linalg.eigvalsh(np.stack([gram(column) for column in np.eye(n)], axis=1))
    else:
        random = np.random.default_rng(0)
        options |= {"v0": random.standard_normal(n), "tol": LANCZOS_TOLERANCE}
        if "rng" in signature(eigsh).parameters:  # of the vectors with which Lanczos starts again
            options["rng"] = random
        operator = LinearOperator((n, n), gram, dtype=np.float64)
        eigenvalues = eigsh(operator, return_eigenvectors=False, **options)
    return np.sqrt(np.maximum(eigenvalues, 0))
