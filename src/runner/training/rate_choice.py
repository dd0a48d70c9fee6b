"""Choice of a learning rate on selection replicates, which are separate from judged replicates.

Replicates 0..R-1 are judged. The replicates after them, the selection replicates, are trained at
every rate of the grid. The judged ones are trained at the fastest of these rates. The speed of a
rate is the training accuracy of its slowest selection replicate, averaged over all epochs. (At the
last epoch several rates may reach a perfect fit.) A rate at which some networks diverge is avoided.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import torch
from jaxtyping import Float
from torch import Tensor

NO_CHOICE = "one rate alone"
"""Value of `selected_on` if the grid has one learning rate."""


@dataclass(frozen=True)
class Choice:
    """A learning rate, and the column `selected_on` that says how it was chosen."""

    rate: float
    selected_on: str


def selection_range(replicates: int, selection_replicates: int) -> range:
    """Return the indices of the replicates on which learning rates are chosen."""
    return range(replicates, replicates + selection_replicates)


def score(accuracy: Float[Tensor, "*R"], loss: Float[Tensor, "*R"]) -> Float[Tensor, "*R"]:
    """Return the training accuracy of one or R networks after an epoch; nan without finite loss.

    A diverged network still classifies some images correctly by chance.
    """
    return torch.where(loss.isfinite(), accuracy, nan)


def ranked(scores: Float[Tensor, "candidates S"]) -> list[int]:
    """Return the candidates sorted by the score of their worst replicate, the highest first.

    Equal candidates keep their order. Candidates that diverged (NaN) on a replicate come last.
    """
    worst = scores.min(dim=1).values.nan_to_num(-inf)  # the minimum is nan if a score is nan
    return worst.sort(descending=True, stable=True).indices.tolist()


def choose(rates: Sequence[float], scores: Float[Tensor, "rates S"], selection: range) -> Choice:
    """Return the fastest of the rates, the smallest of equally fast ones.

    Rates at which a network diverged are chosen only if there is no other. Then the smallest rate
    is returned, and `selected_on` says so.

    scores: sums or means of `score` over epochs, for each rate and selection replicate.
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
