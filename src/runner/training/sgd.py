"""Gradient steps on a stack of networks, each with its own learning rate."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor


def sgd_step(
    losses: Float[Tensor, " R"], parameters: Iterable[Tensor], rates: Float[Tensor, " R"]
) -> None:
    """One step of gradient descent: `theta_r -= rates_r * d losses_r / d theta_r`, in place.

    losses: computed from `parameters`, which require gradients and have the leading axis R. The
    rates weigh the losses, so that they scale a gradient before it is computed and cost nothing.
    The networks share no parameter: one that diverges (nan) changes no other. For ascent negate the
    losses.
    """
    parameters = list(parameters)
    gradients = torch.autograd.grad(losses @ rates, parameters)
    with torch.no_grad():
        torch._foreach_sub_(parameters, gradients)
