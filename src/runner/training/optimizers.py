"""Optimizers of many networks, each network with its own learning rate.

The leading axis R of every tensor counts the networks. They are independent: a diverging network
does not change the others.
"""

import hashlib
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.choices import REGISTERED, lookup
from runner.core.errors import InputError
from runner.networks import own_calls

MOMENTUM = 0.9
BETAS, EPSILON = (0.9, 0.999), 1e-8
"""Constants of Adam, as in Kingma and Ba (2015) and in torch."""

Stacks = dict[str, Float[Tensor, "R *axes"]]
"""Parameters or gradients of all networks, by name."""


class Optimizer(ABC):
    """Base class of optimizers of R networks, which change `parameters` in place.

    parameters: tensors (R, ...) by name. The attribute `state` has by name everything that steps
    change, such as velocities. A user's optimizer may also have numbers there.
    """

    def __init__(self, parameters: Stacks) -> None:
        self.parameters = parameters
        self.state: dict[str, Tensor] = {}

    @abstractmethod
    def step(self, gradients: Stacks, rates: Float[Tensor, " R"]) -> None:
        """Take one step in place. gradients: by the parameter's name. rates: R learning rates."""

    def stored(self) -> dict[str, Tensor]:
        """Return the state as tensors by name, for a checkpoint."""
        return self.state

    def restore(self, stored: Mapping[str, Tensor]) -> None:
        """Set the state to a result of the method `stored`."""
        for name, tensor in self.stored().items():
            tensor.copy_(stored[name])

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


class OwnOptimizer(Optimizer):
    """A user's optimizer, whose first step is checked. Its state may have tensors and numbers.

    name: the optimizer's name, for messages. own: the user's object. parameters: as in `Optimizer`.
    Raises InputError if the state has other objects. The first step raises InputError if it changes
    an attribute that the state lacks, since an interruption would lose it, or if it replaces a
    parameter or changes its shape.
    """

    def __init__(self, name: str, own: Any, parameters: Stacks) -> None:
        self.name, self.own, self.parameters = f"optimizer={name}", own, parameters
        self.marks: dict[str, str] | None = None
        """A digest of all other attributes, before the first step."""
        self._require_state()

    @property
    def state(self) -> Any:  # type: ignore[override]
        """Return the state of the user's object."""
        return getattr(self.own, "state", {})

    def step(self, gradients: Stacks, rates: Float[Tensor, " R"]) -> None:
        """Take one step of the user's optimizer in place. rates: R learning rates."""
        if self.marks is not None:
            with own_calls.call_of("optimizer", self.name):
                self.own.step(gradients, rates)
            return
        before = {name: (p, p.shape, p.dtype) for name, p in self.parameters.items()}
        state, marks = dict(self.state), self._marks()
        with own_calls.call_of("optimizer", self.name):
            self.own.step(gradients, rates)
        self.marks = marks
        for name, (p, shape, dtype) in before.items():
            if self.parameters.get(name) is not p or (p.shape, p.dtype) != (shape, dtype):
                raise InputError(
                    f"{self.name} replaces parameters[{name!r}]: change it in place, for example"
                    f" by self.parameters[{name!r}].sub_(...)"
                )
        self._require_state()
        self._require_marks()
        if next(iter(self.parameters.values())).device.type == "cuda":
            self._require_in_place(state)

    def _require_in_place(self, before: Mapping[str, Any]) -> None:
        """Raise InputError if a step has replaced an entry of the state. before: the entries."""
        for name, value in self.state.items():
            if value is not before.get(name, value):
                raise InputError(
                    f"{self.name} replaces state[{name!r}]: make it a tensor and change it"
                    " in place, because a GPU repeats recorded steps"
                )

    def stored(self) -> dict[str, Tensor]:
        """Return the state as tensors by name; numbers have a name that begins with NUMBER."""
        if self.marks is not None:
            self._require_marks()
        tensors = {name: value for name, value in self.state.items() if isinstance(value, Tensor)}
        numbers = self._numbers().items()
        kinds = {int: torch.int64, bool: torch.bool, float: torch.float64}
        return tensors | {
            NUMBER + name: torch.tensor(value, dtype=kinds[type(value)]) for name, value in numbers
        }

    def restore(self, stored: Mapping[str, Tensor]) -> None:
        """Set the state to a result of the method `stored`, also what the first step adds to it."""
        like = next(iter(self.parameters.values()))
        for name, tensor in stored.items():
            if name.startswith(NUMBER):
                self.state[name.removeprefix(NUMBER)] = tensor.item()
            elif name in self.state:
                self.state[name].copy_(tensor)
            else:
                self.state[name] = tensor.to(like.device, copy=True)

    def _numbers(self) -> dict[str, int | float]:
        return {name: value for name, value in self.state.items() if type(value) in NUMBERS}

    def _require_state(self) -> None:
        """Raise InputError if the state is no dictionary of tensors and numbers."""
        if not isinstance(self.state, dict):
            found = type(self.state).__name__
            raise InputError(f"{self.name}: state is a {found}, not a dictionary by name")
        for name, value in self.state.items():
            if not isinstance(value, Tensor) and type(value) not in NUMBERS:
                raise InputError(
                    f"{self.name}: state[{name!r}] is a {type(value).__name__}, not a tensor or a"
                    " number"
                )

    def _marks(self) -> dict[str, str]:
        """Return a digest of each attribute that is neither the state nor parameters, by name."""
        known = {id(value) for value in (*self.parameters.values(), *self.state.values())}
        known |= {id(self.parameters), id(self.state)}
        attributes = vars(type(self.own)) | getattr(self.own, "__dict__", {})
        return {
            name: _digest(value, known)
            for name, value in attributes.items()
            if name != "state" and not name.startswith("__") and not callable(value)
        }

    def _require_marks(self) -> None:
        """Raise InputError if a step has changed an attribute that the state lacks."""
        before, after = self.marks or {}, self._marks()
        for name in after:
            if after[name] != before.get(name):
                raise InputError(
                    f"{self.name}: step changes self.{name}, which an interruption would lose: keep"
                    f" it in self.state[{name!r}], as a tensor or a number"
                )


NUMBER = "number/"
NUMBERS = (int, float, bool)
"""Types of the numbers in a state."""


def _digest(value: Any, known: set[int]) -> str:
    """Return a text that differs if a value has changed. known: ids of objects that may change."""
    if id(value) in known:
        return ""
    known = known | {id(value)}
    if isinstance(value, Tensor):
        content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return f"{value.dtype} {value.shape} {hashlib.sha256(content).hexdigest()}"
    if isinstance(value, torch.Generator):
        return _digest(value.get_state(), known)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, random.Random):
        return repr(value.getstate())
    if isinstance(value, Mapping):
        return repr([(str(key), _digest(item, known)) for key, item in value.items()])
    if isinstance(value, list | tuple | set | deque):
        return repr([_digest(item, known) for item in value])
    if hasattr(value, "__dict__") and not callable(value):
        return _digest(vars(value), known)
    return repr(value) if type(value).__repr__ is not object.__repr__ else type(value).__name__


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": SGD, "momentum": Momentum, "adam": Adam}
"""The optimizers by their names in configurations."""


def optimizer_of(
    name: str, parameters: Stacks, known: Mapping[str, type[Optimizer]] = OPTIMIZERS
) -> Optimizer:
    """Return a new optimizer of R networks.

    name: a name in `known`, or one that the user has registered. parameters: tensors (R, ...) by
    name. Raises InputError for an unknown name, and as `OwnOptimizer` does.
    """
    make = lookup("optimizer", name, known)
    if name not in REGISTERED.get("optimizer", {}):
        return make(parameters)
    own_calls.require_arguments(f"optimizer={name}", make, ("parameters",))
    with own_calls.call_of("optimizer", name, "init"):
        own = make(parameters)
    own_calls.require_arguments(f"the step of optimizer={name}", own.step, ("gradients", "rates"))
    return OwnOptimizer(name, own, parameters)
