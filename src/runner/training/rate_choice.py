"""The choice of a learning rate, on replicates of its own: what is judged has no part in it.

Replicates 0..R-1 are judged. Those after them see every rate of the grid, and the others are
trained at the rate that learns fastest there. A rate is as fast as the slowest selection replicate
trained at it, by its training accuracy in the mean of all epochs, since several rates may end at a
perfect fit: a learning rate at which some networks diverge is not chosen for the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import torch
from jaxtyping import Float
from torch import Tensor

NO_CHOICE = "one rate alone"
"""The value of `selected_on` where the grid has one learning rate."""


@dataclass(frozen=True)
class Choice:
    """A learning rate, and what it was chosen on: the column `selected_on` of what is judged."""

    rate: float
    selected_on: str


def selection_range(replicates: int, selection_replicates: int) -> range:
    """Return the indices of the replicates that rates are chosen on."""
    return range(replicates, replicates + selection_replicates)


def score(accuracy: Float[Tensor, "*R"], loss: Float[Tensor, "*R"]) -> Float[Tensor, "*R"]:
    """Return the training accuracy of R networks, or of one, after an epoch.

    NaN where the loss is not finite: a diverged network still classifies some images correctly by
    chance.
    """
    return torch.where(loss.isfinite(), accuracy, nan)


def ranked(scores: Float[Tensor, "candidates S"]) -> list[int]:
    """Return the candidates sorted by the score of their worst replicate, the highest first.

    Equal candidates keep their order. Candidates that diverged (NaN) on a replicate come last.
    """
    worst = scores.min(dim=1).values.nan_to_num(-inf)  # the minimum is nan where one is
    return worst.sort(descending=True, stable=True).indices.tolist()


def choose(rates: Sequence[float], scores: Float[Tensor, "rates S"], selection: range) -> Choice:
    """Return the fastest of the rates, the smallest of equally fast ones.

    One at which a network has diverged is never chosen while there is another; where there is
    none, the smallest is taken, and `selected_on` says so.

    scores: sums or means of `score` over epochs, of each selection replicate.
    """
    if len(rates) == 1:
        return Choice(rates[0], NO_CHOICE)
    ascending = sorted(range(len(rates)), key=rates.__getitem__)
    fastest = ascending[ranked(scores[ascending])[0]]
    return Choice(rates[fastest], described(selection, bool(scores[fastest].isnan().any())))


def described(selection: range, diverged: bool) -> str:
    """Return the value of `selected_on` after a choice on these replicates."""
    words = f"replicates {', '.join(map(str, selection))}"
    return f"{words}: all rates diverged" if diverged else words
