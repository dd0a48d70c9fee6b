"""The choice of a learning rate, on replicates of its own: what is judged has no part in it.

Replicates 0..R-1 are judged. Those after them see every rate of the grid, and the others are
trained at the rate that learns fastest there. A rate is as fast as the slowest selection replicate
trained at it, by its training accuracy in the mean of all epochs, since several rates may end at a
perfect fit: one that some networks do not survive is not taken for the luck of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import torch
from jaxtyping import Float
from torch import Tensor

NO_CHOICE = "one rate alone"
"""What stands in `selected_on` where the grid has one rate."""


@dataclass(frozen=True)
class Choice:
    """A learning rate, and what it was chosen on: the column `selected_on` of what is judged."""

    rate: float
    selected_on: str


def selection_range(replicates: int, selection_replicates: int) -> range:
    """The indices of the replicates that rates are chosen on."""
    return range(replicates, replicates + selection_replicates)


def score(accuracy: Float[Tensor, "*R"], loss: Float[Tensor, "*R"]) -> Float[Tensor, "*R"]:
    """What an epoch of R networks, or of one, counts in the choice: the training accuracy.

    Nan where the loss is not finite: one that has diverged still guesses right now and then.
    """
    return torch.where(loss.isfinite(), accuracy, nan)


def choose(rates: Sequence[float], scores: Float[Tensor, "rates S"], selection: range) -> Choice:
    """The fastest of the rates, the smallest of equally fast ones.

    One at which a network has diverged is never chosen while there is another; where there is
    none, the smallest is taken, and `selected_on` says so.

    scores: sums or means of `score` over epochs, of each selection replicate.
    """
    if len(rates) == 1:
        return Choice(rates[0], NO_CHOICE)
    worst = scores.min(dim=1).values  # nan where one is
    speeds = worst.nan_to_num(-1.0).tolist()
    fastest = min(r for r, speed in zip(rates, speeds, strict=True) if speed == max(speeds))
    words = f"replicates {', '.join(map(str, selection))}"
    return Choice(fastest, f"{words}: all rates diverged" if worst.isnan().all() else words)
