"""The order in which each replicate sees its data."""

import torch
from jaxtyping import Int
from torch import Tensor

from runner.core.streams import generator


def epoch_order(seed: int, replicates: int, samples: int, epoch: int) -> Int[Tensor, "R samples"]:
    """Return a random order of 0..samples-1 for each replicate, that of this epoch.

    It depends on seed, replicate and epoch alone, so that a run can go on in the middle of an
    epoch.
    """
    orders = [
        torch.randperm(samples, generator=generator(seed, r, f"order of epoch {epoch}"))
        for r in range(replicates)
    ]
    return torch.stack(orders)
