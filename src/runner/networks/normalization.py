"""The variants of batch normalization, for tensors (batch, channels, ...) as torch has them.

The features of a stack of R fully connected networks are the R d channels of one such tensor.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

NORMALIZATIONS: dict[str, bool | None] = {"none": None, "batch": True, "batch_no_mean": False}
"""By name, whether the mean is subtracted; None: nothing is normalized."""

EPSILON = 1e-5
MOMENTUM = 0.1
"""Of the running statistics; `torch.nn.BatchNorm1d` has the same constants."""


def batch_norm(
    x: Float[Tensor, "N C *rest"],
    scale: Float[Tensor, " C"],
    shift: Float[Tensor, " C"],
    running: tuple[Tensor, Tensor] | None,
    training: bool,
) -> Float[Tensor, "N C *rest"]:
    """`torch.nn.BatchNorm1d` and its like: `(x - mean) / sqrt(variance + eps) * scale + shift`.

    running: mean and variance, used when not training and updated in place when training; None:
    statistics of the batch, remembered nowhere.
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
    """Division by the root mean square alone, the `BN` of paper B's Eq. (2), then scale and shift.

    running: the mean square, used and updated as the variance of `batch_norm`.
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
