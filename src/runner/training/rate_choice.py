"""Choice of a learning rate by selection replicates, which are separate from judged replicates.

Replicates 0..R-1 are judged. The replicates after them, the selection replicates, are trained at
every learning rate of the grid. The judged replicates are trained at the fastest of these rates.
The speed of a rate is the training accuracy of its slowest selection replicate, averaged over all
epochs. (At the last epoch several rates may reach a perfect fit.) A rate at which some networks
diverge is avoided.
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
    """A learning rate, and how it was chosen.

    selected_on: the text of the column `selected_on`, such as `replicates 5, 6`.
    """

    rate: float
    selected_on: str


def selection_range(replicates: int, selection_replicates: int) -> range:
    """Return the indices of the selection replicates, which follow the judged replicates.

    replicates: the number of judged replicates. selection_replicates: the number of replicates with
    which the learning rate is chosen.
    """
    return range(replicates, replicates + selection_replicates)


def score(accuracy: Float[Tensor, "*R"], loss: Float[Tensor, "*R"]) -> Float[Tensor, "*R"]:
    """Return the training accuracy after an epoch, or nan where the loss is not finite.

    The result has the shape of the arguments: one number, or one for each of R networks. A diverged
    network needs the nan, since it still classifies some images correctly by chance.
    """
    return torch.where(loss.isfinite(), accuracy, nan)


def ranked(scores: Float[Tensor, "candidates S"]) -> list[int]:
    """Return the indices of the candidates, sorted by the score on their worst replicate.

    The highest score comes first. Candidates with equal scores keep their order. Candidates with a
    nan score (diverged) on any replicate come last.
    """
    worst = scores.min(dim=1).values.nan_to_num(-inf)  # the minimum is nan if a score is nan
    return worst.sort(descending=True, stable=True).indices.tolist()


def choose(rates: Sequence[float], scores: Float[Tensor, "rates S"], selection: range) -> Choice:
    """Return the learning rate with the highest score on its worst selection replicate.

    Of equally good rates the smallest is returned. A rate at which a network diverged is chosen
    only if there is no other. Then the smallest rate is returned, and `selected_on` states that all
    rates diverged.

    rates: the learning rates. scores: sums or means of `score` over epochs, for each rate and
    selection replicate. selection: the indices of the selection replicates.
    """
    if len(rates) == 1:
        return Choice(rates[0], NO_CHOICE)
    ascending = sorted(range(len(rates)), key=rates.__getitem__)
    fastest = ascending[ranked(scores[ascending])[0]]
    return Choice(rates[fastest], described(selection, bool(scores[fastest].isnan().any())))


def described(selection: range, diverged: bool) -> str:
    """Return the text of the column `selected_on`: the replicates with which a rate was chosen.

    diverged: whether networks diverged at all rates; the text then says so.
    """
    words = f"replicates {', '.join(map(str, selection))}"
    return f"{words}: all rates diverged" if diverged else words
