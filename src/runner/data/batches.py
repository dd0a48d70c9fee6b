"""The order in which each replicate sees its data."""

import torch
from jaxtyping import Int
from torch import Tensor

from runner.core.streams import Stream, order_of


def epoch_order(
    stream: Stream, replicates: int, samples: int, epoch: int
) -> Int[Tensor, "R samples"]:
    """Return a random order of the samples 0..samples-1 for each of R replicates in one epoch.

    stream: a function of a replicate and a purpose that returns a random generator. epoch: counted
    from 1. The order depends only on stream, replicate and epoch, so a run can be resumed within an
    epoch.
    """
    orders = [
        torch.randperm(samples, generator=stream(r, order_of(epoch))) for r in range(replicates)
    ]
    return torch.stack(orders)
