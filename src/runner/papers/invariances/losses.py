"""Losses of the margin z = y f(x), y in {-1, 1}, and their logarithms."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

MARGIN_LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": lambda z: softplus(-z),
    "exponential": lambda z: torch.exp(-z),
    "squared": lambda z: (z - 1).square() / 2,  # (f - y)^2 / 2
}
"""By name; elementwise."""

FAR = 30.0
"""Margin from which log(log(1 + exp(-z))) is -z to within rounding of the gradient."""


def log_losses(z: Float[Tensor, "R n"], loss: str) -> Float[Tensor, "R n"]:
    """The logarithm of the logistic or exponential loss, without underflow."""
    if loss == "exponential":
        return -z
    return torch.where(z > FAR, -z, softplus(-z.clamp(max=FAR)).log())
