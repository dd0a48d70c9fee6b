"""Losses of the margin z = y f(x), y in {-1, 1}, and their logarithms."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from runner.core.arrays import takes_arrays
from runner.core.choices import lookup

Loss = Callable[[Tensor], Tensor]

MARGIN_LOSSES: dict[str, Loss] = {
    "logistic": lambda z: softplus(-z),
    "exponential": lambda z: torch.exp(-z),
    "squared": lambda z: (z - 1).square() / 2,  # (f - y)^2 / 2
}
"""Losses of the margin by name; elementwise."""

FAR = 30.0
"""Margin above which log(log(1 + exp(-z))) equals -z up to the gradient's rounding."""


LOG_LOSSES: dict[str, Loss] = {
    "logistic": lambda z: torch.where(z > FAR, -z, softplus(-z.clamp(max=FAR)).log()),
    "exponential": lambda z: -z,
}
"""Logarithms, without underflow, of the losses that go to zero."""


@takes_arrays()
def log_losses(z: Float[Tensor, "R n"], loss: str) -> Float[Tensor, "R n"]:
    """Return the logarithm of the loss at margins z, without underflow.

    z: margins y f(x). loss: "logistic" or "exponential". Raises InputError for other losses.
    """
    return lookup("loss", loss, LOG_LOSSES)(z)
