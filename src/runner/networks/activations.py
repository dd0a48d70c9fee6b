"""The table of activations, for forward passes, written-out gradients, kernels, initialization.

To add one here, add its name in `core.choices` and a line in `ACTIVATIONS`. One of your own needs
neither: `activation=my_module:swish` names a function of tensors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import pi

import torch
from torch import Tensor
from torch.nn import functional

from runner.core.errors import lookup
from runner.core.user_functions import function_at

LEAK = 0.01
"""Slope of the leaky ReLU below zero, as torch has it."""


@dataclass(frozen=True)
class Activation:
    """sigma, elementwise.

    function: sigma(Z), which may change Z in place. derivative: sigma'(z) from the value sigma(z),
    for gradients that are written out; None: by autograd alone. below: the slope below zero of
    sigma(z) = z for z > 0, below z for z < 0; None: it is not positively homogeneous.
    """

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor] | None = None
    below: float | None = None

    @cached_property
    def gain(self) -> float:
        """g with which weights N(0, g^2 / in) keep second moments: 1 / sqrt(E sigma(z)^2)."""
        z = torch.linspace(-12, 12, 24_001, dtype=torch.float64)
        density = (-z.square() / 2).exp() * ((z[1] - z[0]) / (2 * pi) ** 0.5)
        return float((self.function(z.clone()).square() * density).sum().rsqrt())


ACTIVATIONS = {
    "relu": Activation(torch.relu_, lambda H: H > 0, below=0.0),
    "linear": Activation(lambda Z: Z, torch.ones_like, below=1.0),
    "tanh": Activation(torch.tanh_, lambda H: 1 - H.square()),
    "leaky_relu": Activation(functional.leaky_relu, below=LEAK),
    "gelu": Activation(functional.gelu),
}


def activation_of(name: str) -> Activation:
    """Return the activation of that name, or one's own `module:function`.

    Raises InputError for a name that is unknown.
    """
    if ":" not in name:
        return lookup("activation", name, ACTIVATIONS)
    return Activation(function_at(name))
