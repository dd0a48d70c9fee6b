"""Normalization layers, for tensors (batch, channels, ...) as in torch.

Batch normalization uses statistics over the batch. The features of R fully connected networks are
the R d channels of one tensor. All other normalizations are functions of one sample: they treat
each column of `(R, d, N)` alone. A new one needs such a function, with a name in `NORMALIZATIONS`
and in `core.choices`.
"""

from collections.abc import Callable
from typing import Any

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
        output, square = _OverRootMeanSquare.apply(x, scale, shift)
        if running is not None:
            running.lerp_(square.detach(), MOMENTUM)
        return output
    factor = scale * torch.rsqrt(running + EPSILON)
    shape = _along_channels(x)
    return torch.addcmul(shift.view(shape), x, factor.view(shape))


def _along_channels(x: Tensor) -> tuple[int, ...]:
    """Return the shape with which a number for each channel broadcasts over x."""
    return (1, -1, *[1] * (x.ndim - 2))


class _OverRootMeanSquare(torch.autograd.Function):
    """The function `x / root mean square * scale + shift`, with its gradient implemented by hand.

    It takes fewer passes over x than automatic differentiation, with the same roundings.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output, and the mean square of each channel, through which none flows."""
        square = x.square().mean(dim=[0, *range(2, x.ndim)])
        inverse = torch.rsqrt(square + EPSILON)
        ctx.save_for_backward(x, scale, inverse)
        ctx.mark_non_differentiable(square)
        shape = _along_channels(x)
        return torch.addcmul(shift.view(shape), x, (scale * inverse).view(shape)), square

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        """Return the derivatives by x, scale and shift."""
        (x, scale, inverse), g = ctx.saved_tensors, gradients[0]
        dims, shape = [0, *range(2, x.ndim)], _along_channels(x)
        by_factor = (g * x).sum(dims)
        by_x = None
        if ctx.needs_input_grad[0]:
            by_square = -0.5 * (by_factor * scale) * inverse.pow(3)
            mean = by_square / (x.numel() // len(scale))
            by_x = g * (scale * inverse).view(shape)
            by_x.add_(x * (2 * mean).view(shape))  # addcmul rounds once only
        return by_x, by_factor * inverse, g.sum(dims)


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
