"""Monte Carlo estimate of the change of `||M||_F^2` over one layer (paper B, Lemma 7)."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from runner.papers.batch_norm_rank.rank_chain.batch_means import mean_and_error
from runner.papers.batch_norm_rank.rank_chain.engines import fill, unit_rows

DRAWS_AT_ONCE = 4096


def frobenius_step(
    G: Float[Tensor, "d K"],
    skip: float,
    law: str,
    draws: int,
    generator: Generator,
    tick: Callable[[int], None] = lambda draws: None,
) -> tuple[float, float]:
    """Return the mean change of `||M||_F^2` over one layer, and its standard error (Eq. 42, 43).

    The change is `E_W ||M_+||_F^2 - ||M||_F^2`. Here `M = G G^T` holds the second moments of the
    state G, and M_+ the second moments one layer later. The mean is a Monte Carlo estimate over
    random weights W.

    G: the state, with rows of unit norm. skip: gamma. law: distribution of W. draws: number of
    pairs `W, -W`. tick: called with the number of draws done.

    W and -W have the same distribution (Definition 1). The mean of a pair has no term linear in
    gamma, which would hide the quadratic term of Lemma 7. Raises InputError for an unknown
    distribution.
    """
    width = len(G)
    before = (G.mT @ G).square().sum()
    changes = []
    for start in range(0, draws, DRAWS_AT_ONCE):
        count = min(DRAWS_AT_ONCE, draws - start)
        W = fill(torch.empty(count, width, width, dtype=G.dtype), law, generator)
        step = skip * (W.to(G.device) @ G)
        changes.append(sum(_frobenius(G + sign * step) for sign in (1, -1)) / 2 - before)
        tick(count)
    return mean_and_error(torch.cat(changes).tolist())


def _frobenius(G: Float[Tensor, "draws d K"]) -> Float[Tensor, " draws"]:
    """Return `||M||_F^2` after batch normalization of `G`."""
    G = unit_rows(G)
    return (G.mT @ G).square().sum(dim=(-2, -1))
