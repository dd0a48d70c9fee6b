"""Rank of a sparse Khatri-Rao product from its zeros alone (paper A, Theorem 3 and Lemma 9)."""

import numpy as np
from jaxtyping import Float
from scipy.sparse import csgraph, csr_array
from torch import Tensor

from runner.papers.norm_tuning.theorem_1 import khatri_rao


def structural_rank(W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"]) -> int:
    """Structural rank of `K = W2 (.) W1^T`: the largest matching of its rows and columns.

    For a square K it is full exactly where the Boolean determinant of the masks is one (Definition
    8). With continuous weights K is then invertible with probability one, and never otherwise
    (Lemma 9).
    """
    shape = (W2.shape[0] * W1.shape[1], W1.shape[0])
    if bool((W1 != 0).all()) and bool((W2 != 0).all()):
        return min(shape)
    pattern = khatri_rao((W2 != 0).float(), (W1 != 0).float()).numpy().astype(np.int8)
    return int(csgraph.structural_rank(csr_array(pattern)))


def cut_off_units(W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"]) -> int:
    """Number of hidden units with no incoming or no outgoing weight: the zero columns of K."""
    return int(((W1 == 0).all(dim=1) | (W2 == 0).all(dim=0)).sum())
