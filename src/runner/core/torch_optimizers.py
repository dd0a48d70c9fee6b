"""Optimizers of torch for many networks, each with its own learning rate: `torch.optim:AdamW`.

Torch takes a step at the learning rate 1. It is then multiplied by each network's rate. This is the
optimizer's own step where the step is elementwise and proportional to the learning rate.
"""

from typing import Any

from runner.core.errors import InputError

PREFIX = "torch.optim:"

KNOWN = ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "SGD")
"""The optimizers of torch whose step is elementwise and proportional to the learning rate."""


def optimizer_class(name: str) -> type["OfTorch"]:
    """Return the class of an optimizer of torch. name: `torch.optim:AdamW`.

    Raises InputError if there is no such optimizer, or it is refused.
    """
    own = name.removeprefix(PREFIX)
    if own not in KNOWN:
        raise InputError(
            f"optimizer={name}: its steps are not elementwise or not proportional to the learning"
            f" rate, or it is unknown. Choose from {', '.join(KNOWN)}"
        )
    return type(own, (OfTorch,), {"__module__": __name__, "__qualname__": own})


class OfTorch:
    """An optimizer of torch, named as its class. `state` has the tensors of torch's own state.

    parameters: tensors (R, ...) by name, which steps change in place.
    """

    def __init__(self, parameters: dict[str, Any]) -> None:
        import torch  # late: the command line checks names without it

        make, tensors = getattr(torch.optim, type(self).__name__), [*parameters.values()]
        options: dict[str, Any] = {"lr": 1.0, "foreach": False}
        if tensors[0].is_cuda and type(self).__name__ not in ("SGD", "Adagrad"):
            options["capturable"] = True  # a GPU repeats recorded steps
        optimizer = make(tensors, **options)
        self.parameters = parameters
        # A function: the check of the first step refuses attributes that a step changes.
        self.optimizer = lambda: optimizer
        self.state: dict[str, Any] = {}
        self._take_state()

    def _take_state(self) -> None:
        of = self.optimizer().state
        for name, parameter in self.parameters.items():
            self.state |= {f"{key}.{name}": value for key, value in of.get(parameter, {}).items()}

    def step(self, gradients: dict[str, Any], rates: Any) -> None:
        """Take one step in place. gradients: by the parameter's name. rates: R learning rates."""
        before, optimizer = {}, self.optimizer()
        for name, parameter in self.parameters.items():
            before[name], parameter.grad = parameter.detach().clone(), gradients.get(name)
            optimizer.state[parameter] = {}
        for key, value in self.state.items():
            own, _, name = key.partition(".")
            optimizer.state[self.parameters[name]][own] = value
        optimizer.step()
        for name, parameter in self.parameters.items():
            parameter.grad = None
            along = rates.to(parameter.dtype).reshape(-1, *[1] * (parameter.dim() - 1))
            parameter.sub_(before[name]).mul_(along).add_(before[name])
        self._take_state()
