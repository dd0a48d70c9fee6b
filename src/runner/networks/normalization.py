"""Batch normalization of a stack of R networks, in the layout (R, features, batch).

Samples are columns, as in paper B, so that the statistics of a feature are those of one contiguous
row, and torch's own batch norm takes the features of all networks as channels without a copy.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

NORMALIZATIONS = ("none", "batch", "batch_no_mean")

EPSILON = 1e-5
MOMENTUM = 0.1
"""Of the running statistics; both constants are those of `torch.nn.BatchNorm1d`."""


def batch_norm(
    Z: Float[Tensor, "R d N"],
    scale: Float[Tensor, "R d"],
    shift: Float[Tensor, "R d"],
    running: tuple[Tensor, Tensor] | None,
    training: bool,
) -> Float[Tensor, "R d N"]:
    """`torch.nn.BatchNorm1d` for each network of the stack.

    running: mean and variance, each (R, d), used when not training and updated in place when
    training; None: statistics of the batch, remembered nowhere.
    """
    R, d, N = Z.shape
    mean, variance = (None, None) if running is None else (tensor.view(-1) for tensor in running)
    normalized = functional.batch_norm(
        Z.reshape(1, R * d, N),
        mean,
        variance,
        scale.reshape(-1),
        shift.reshape(-1),
        training=training or running is None,
        momentum=MOMENTUM,
        eps=EPSILON,
    )
    return normalized.view(R, d, N)


def batch_norm_no_mean(
    Z: Float[Tensor, "R d N"],
    scale: Float[Tensor, "R d"],
    shift: Float[Tensor, "R d"],
    running: Tensor | None,
    training: bool,
) -> Float[Tensor, "R d N"]:
    """Division by the root mean square alone, the `BN` of paper B's Eq. (2), then scale and shift.

    running: the mean square (R, d), used and updated as the variance of `batch_norm`.
    """
    if training or running is None:
        square = Z.square().mean(dim=-1)
        if running is not None:
            running.lerp_(square.detach(), MOMENTUM)
    else:
        square = running
    factor = scale * torch.rsqrt(square + EPSILON)
    return torch.addcmul(shift[..., None], Z, factor[..., None])
