"""Spectra of many matrices. Matrices that are not finite give nan.

A diverged network is a result. For its matrices torch's decompositions would raise an error or
never end.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def svdvals(A: Float[Tensor, "*R m n"]) -> Float[Tensor, "*R k"]:
    """Return the k = min(m, n) singular values of each matrix in descending order.

    A matrix that is not finite gives nan.
    """
    return _guarded(torch.linalg.svdvals, A)


def svd(A: Float[Tensor, "*R m n"]) -> tuple[Tensor, Tensor, Tensor]:
    """Return U (m, k), s (k) and Vh (k, n) with `A = U diag(s) Vh`, for each matrix A.

    The decomposition is thin: k = min(m, n). A matrix that is not finite gives nan.
    """
    return _guarded(lambda finite: torch.linalg.svd(finite, full_matrices=False), A)


def operator_norm(A: Float[Tensor, "*R m n"]) -> Float[Tensor, "*R"]:
    """Return the largest singular value of each matrix; nan if the matrix is not finite."""
    return _guarded(lambda finite: torch.linalg.matrix_norm(finite, 2), A)


def eigvalsh(A: Float[Tensor, "*R n n"]) -> Float[Tensor, "*R n"]:
    """Return the eigenvalues of each symmetric matrix in ascending order.

    A matrix that is not finite gives nan.
    """
    return _guarded(torch.linalg.eigvalsh, A)


def _guarded(decompose: Callable[[Tensor], Any], A: Float[Tensor, "*R m n"]) -> Any:
    """Return the decomposition of the finite matrices, and nan for the others."""
    finite = A.isfinite().all(-1).all(-1)
    if finite.all():
        return decompose(A)
    parts = decompose(A.where(finite[..., None, None], 0.0))

    def hidden(part: Tensor) -> Tensor:
        return part.where(finite.view((*finite.shape, *[1] * (part.ndim - finite.ndim))), torch.nan)

    return hidden(parts) if isinstance(parts, Tensor) else tuple(hidden(part) for part in parts)
