"""Table of activations: functions, derivatives, and gains of the initialization.

A new activation of the program needs a name in `core.choices` and an entry in `ACTIVATIONS`. A
user's activation needs neither: `activation=my_module:swish` is a function of tensors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import pi
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from runner.core.user_functions import function_at
from runner.networks.own_calls import checked, method_of

LEAK = 0.01
"""The slope of the leaky ReLU for negative inputs, as in torch."""


@dataclass(frozen=True)
class Activation:
    """An activation function sigma, applied to each number in a tensor.

    - function: returns sigma(Z), and may change Z in place.
    - derivative: returns sigma'(z) from sigma(z), for gradients implemented by hand. None:
      gradients need automatic differentiation.
    - below: the slope for z < 0, if the slope for z > 0 is one. None: sigma has another form, so it
      is not positively homogeneous.
    """

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor] | None = None
    below: float | None = None

    @cached_property
    def gain(self) -> float:
        """Return the factor 1 / sqrt(E sigma(z)^2), for a standard Gaussian z.

        A layer of n inputs with weights N(0, gain^2 / n) preserves second moments.
        """
        z = torch.linspace(-12, 12, 24_001, dtype=torch.float64)
        density = (-z.square() / 2).exp() * ((z[1] - z[0]) / (2 * pi) ** 0.5)
        return float((self.function(z.clone()).square() * density).sum().rsqrt())


ACTIVATIONS = {
    "relu": Activation(torch.relu_, torch.sign, below=0.0),
    "linear": Activation(lambda Z: Z, torch.ones_like, below=1.0),
    "tanh": Activation(torch.tanh_, lambda H: 1 - H.square()),
    "leaky_relu": Activation(functional.leaky_relu, below=LEAK),
    "gelu": Activation(functional.gelu),
}


def activation_of(name: str) -> Activation:
    """Return the activation with this name, from ACTIVATIONS or from the user.

    name: a name in ACTIVATIONS, a name that the user has registered, or `module:function`. Raises
    InputError for an unknown name, and for a function that cannot be imported.
    """
    known: dict[str, Any] = {**ACTIVATIONS}
    if ":" in name:
        return Activation(checked("activation", name, function_at(name)))
    found = method_of("activation", name, known)
    return found if isinstance(found, Activation) else Activation(found)
