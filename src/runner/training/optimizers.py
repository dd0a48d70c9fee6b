"""Optimizers of many networks, each network with its own learning rate.

The leading axis R of every tensor counts the networks. They are independent: a diverging network
does not change the others.
"""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

MOMENTUM = 0.9
BETAS, EPSILON = (0.9, 0.999), 1e-8
"""Constants of Adam, as in Kingma and Ba (2015) and in torch."""

Stacks = dict[str, Float[Tensor, "R *axes"]]
"""Parameters or gradients of all networks, by name."""


class Optimizer(ABC):
    """Base class of optimizers of R networks, which change `parameters` in place.

    parameters: tensors (R, ...) by name. The attribute `state` has the tensors of the optimizer by
    name, such as velocities.
    """

    def __init__(self, parameters: Stacks) -> None:
        self.parameters = parameters
        self.state: dict[str, Tensor] = {}

    @abstractmethod
    def step(self, gradients: Stacks, rates: Float[Tensor, " R"]) -> None:
        """Take one step in place. gradients: by the parameter's name. rates: R learning rates."""

    def _along(self, rates: Float[Tensor, " R"], like: Tensor) -> Tensor:
        return rates.to(like.dtype).reshape(-1, *[1] * (like.dim() - 1))


class SGD(Optimizer):
    """Gradient descent: `theta -= rate * gradient`."""

    def step(self, gradients: Stacks, rates: Float[Tensor, " R"]) -> None:
        """Take one step of gradient descent in place. rates: R learning rates."""
        for name, gradient in gradients.items():
            self.parameters[name].sub_(self._along(rates, gradient) * gradient)


class Momentum(Optimizer):
    """Gradient descent with heavy-ball momentum: `v = 0.9 v + gradient; theta -= rate * v`."""

    def __init__(self, parameters: Stacks) -> None:
        super().__init__(parameters)
        self.state = {name: torch.zeros_like(value) for name, value in parameters.items()}

    def step(self, gradients: Stacks, rates: Float[Tensor, " R"]) -> None:
        """Update the velocities v, and take one step along them in place.

        rates: R learning rates.
        """
        for name, gradient in gradients.items():
            velocity = self.state[name].mul_(MOMENTUM).add_(gradient)
            self.parameters[name].sub_(self._along(rates, gradient) * velocity)


class Adam(Optimizer):
    """Adam, as in Algorithm 1 of Kingma and Ba (2015)."""

    def __init__(self, parameters: Stacks) -> None:
        super().__init__(parameters)
        some = next(iter(parameters.values()))
        self.state = {"t": some.new_zeros((), dtype=torch.float64)}  # a tensor: a GPU replays steps
        for moment in ("m", "v"):
            zeros = {f"{moment}.{n}": torch.zeros_like(value) for n, value in parameters.items()}
            self.state |= zeros

    def step(self, gradients: Stacks, rates: Float[Tensor, " R"]) -> None:
        """Update the moments of the gradients, and take one step of Adam in place.

        rates: R learning rates.
        """
        t = self.state["t"].add_(1)
        unbiased = [1 - beta**t for beta in BETAS]
        for name, g in gradients.items():
            m = self.state[f"m.{name}"].lerp_(g, 1 - BETAS[0])
            v = self.state[f"v.{name}"].mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
            direction = (m / unbiased[0]) / ((v / unbiased[1]).sqrt_() + EPSILON)
            self.parameters[name].sub_(self._along(rates, g) * direction)


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": SGD, "momentum": Momentum, "adam": Adam}
"""The optimizers by their names in configurations."""
