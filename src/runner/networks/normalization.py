"""Variants of batch normalization, for tensors (batch, channels, ...) as in torch.

The features of R fully connected networks are the R d channels of one such tensor.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

NORMALIZATIONS: dict[str, bool | None] = {"none": None, "batch": True, "batch_no_mean": False}
"""True if the mean is subtracted, by the normalization's name; None: no normalization."""

EPSILON = 1e-5
MOMENTUM = 0.1
"""Momentum of the running statistics; torch's BatchNorm1d has the same constants."""


def batch_norm(
    x: Float[Tensor, "N C *rest"],
    scale: Float[Tensor, " C"],
    shift: Float[Tensor, " C"],
    running: tuple[Tensor, Tensor] | None,
    training: bool,
) -> Float[Tensor, "N C *rest"]:
    """Return `(x - mean) / sqrt(variance + eps) * scale + shift`, as `torch.nn.BatchNorm1d`.

    running: running mean and variance of shape (C,). If training, they are updated in place and the
    statistics of the batch are used. If not, they are used themselves. None: the statistics of the
    batch are used, and recorded nowhere.
    """
    mean, variance = running or (None, None)
    return functional.batch_norm(
        x, mean, variance, scale, shift, training or running is None, MOMENTUM, EPSILON
    )


def batch_norm_no_mean(
    x: Float[Tensor, "N C *rest"],
    scale: Float[Tensor, " C"],
    shift: Float[Tensor, " C"],
    running: Float[Tensor, " C"] | None,
    training: bool,
) -> Float[Tensor, "N C *rest"]:
    """Return `x / root mean square * scale + shift`, the `BN` of paper B's Eq. (2).

    The mean square is over the batch; EPSILON is added to it. running: the running mean square,
    updated or used like the variance of `batch_norm`. None: the batch's is used.
    """
    if training or running is None:
        square = x.square().mean(dim=[0, *range(2, x.ndim)])
        if running is not None:
            running.lerp_(square.detach(), MOMENTUM)
    else:
        square = running
    factor = scale * torch.rsqrt(square + EPSILON)
    shape = (1, -1, *[1] * (x.ndim - 2))
    return torch.addcmul(shift.view(shape), x, factor.view(shape))
