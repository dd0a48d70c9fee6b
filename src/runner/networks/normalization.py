"""Normalization layers, for tensors (batch, channels, ...) as in torch.

Batch normalization uses statistics over the batch. The features of R fully connected networks are
the R d channels of one tensor. All other normalizations are functions of one sample: they treat
each column of `(R, d, N)` alone. A new one needs such a function, with a name in `NORMALIZATIONS`
and in `core.choices`.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

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

    running: the running mean and the running variance, each of shape (C,). In training, the
    statistics of the batch are used, and the running ones are updated in place. Otherwise the
    running statistics are used. None: the statistics of the batch are used and not recorded.
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

    The mean square is over the batch; EPSILON is added to it. running: the running mean square
    (C,). In training, the batch's mean square is used, and the running one is updated in place.
    Otherwise the running one is used. None: the batch's mean square is used and not recorded.
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


def rms_norm(x: Float[Tensor, "N C *rest"]) -> Float[Tensor, "N C *rest"]:
    """Return each sample divided by the root mean square of its features (as `torch.nn.RMSNorm`).

    The constant `EPSILON` is added to the mean square. Source: Zhang and Sennrich 2019.
    """
    return x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + EPSILON)


def layer_norm(x: Float[Tensor, "N C *rest"]) -> Float[Tensor, "N C *rest"]:
    """Return each sample with mean 0 and variance 1 over its features (as `torch.nn.LayerNorm`).

    The constant `EPSILON` is added to the variance. Source: Ba, Kiros and Hinton 2016.
    """
    return rms_norm(x - x.mean(dim=1, keepdim=True))


OfSample = Callable[[Tensor], Tensor]
"""A function that normalizes each sample alone. Argument and result are tensors (samples, features,
...) of the same shape."""

NORMALIZATIONS: dict[str, bool | OfSample | None] = {
    "none": None,
    "batch": True,
    "batch_no_mean": False,
    "layer": layer_norm,
    "rms": rms_norm,
}
"""Normalizations by name: None for none; a function of each sample; or, for batch normalization,
whether the mean is subtracted."""
