"""Spectra of stacks of matrices of which some may have diverged: nan where one is not finite.

A diverged network is a result; the decompositions of torch raise an error there, or never converge.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def svdvals(A: Float[Tensor, "*R m n"]) -> Float[Tensor, "*R k"]:
    """Singular values, falling."""
    return _guarded(torch.linalg.svdvals, A)


def svd(A: Float[Tensor, "*R m n"]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the thin decomposition `A = U diag(s) Vh`: U (m, k), s (k), Vh (k, n) with k = min(m,
    n)."""
    return _guarded(lambda finite: torch.linalg.svd(finite, full_matrices=False), A)


def operator_norm(A: Float[Tensor, "*R m n"]) -> Float[Tensor, "*R"]:
    """Return the largest singular value."""
    return _guarded(lambda finite: torch.linalg.matrix_norm(finite, 2), A)


def eigvalsh(A: Float[Tensor, "*R n n"]) -> Float[Tensor, "*R n"]:
    """Eigenvalues of symmetric matrices, rising."""
    return _guarded(torch.linalg.eigvalsh, A)


def _guarded(decompose: Callable[[Tensor], Any], A: Float[Tensor, "*R m n"]) -> Any:
    """Return what `decompose` makes of the finite matrices, and nan in the place of the others'."""
    finite = A.isfinite().all(-1).all(-1)
    if finite.all():
        return decompose(A)
    parts = decompose(A.where(finite[..., None, None], 0.0))

    def hidden(part: Tensor) -> Tensor:
        return part.where(finite.view((*finite.shape, *[1] * (part.ndim - finite.ndim))), torch.nan)

    return hidden(parts) if isinstance(parts, Tensor) else tuple(hidden(part) for part in parts)
