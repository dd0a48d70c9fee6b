"""Functions of the user, named as `module:function` in a configuration, or registered."""

import importlib
import inspect
import json
import os
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from runner.core.choices import KINDS, REGISTERED
from runner.core.errors import InputError, nearest

NAMED = "RUNNER_NAMES"
"""Environment variable with the registered functions, as JSON. Worker processes read it."""


def function_at(path: str) -> Callable[..., Any]:
    """Return the function that `module:function` names.

    Raises InputError if the module cannot be imported or has no such function.
    """
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        why = f"{type(error).__name__}: {error}"
        if module_name.endswith(".py"):
            right = f"{module_name.removesuffix('.py')}:{name}"
            raise InputError(f"{path} is module:function: drop .py, {right}") from error
        raise InputError(f"{path}: {module_name} cannot be imported ({why})") from error
    function = getattr(module, name, None)
    if not callable(function):
        hint = nearest(name, vars(module))
        raise InputError(f"{path}: {module_name} has no function {name}: {hint}")
    return function


def described(error: BaseException) -> str:
    """Return an error in words, and where it arose: `ValueError: ... (methods.py, line 7, in mad)`.

    The place is the last line of the traceback that is the user's code, not the program's or an
    installed package's. If there is none, it is left out.
    """
    text = f"{type(error).__name__}: {error}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        is_own = path.is_file() and not {"site-packages", "dist-packages"} & {*path.parts}
        if is_own and not any(path.is_relative_to(folder) for folder in NOT_OWN):
            return f"{text} ({path.name}, line {frame.lineno}, in {frame.name})"
    return text


NOT_OWN = (Path(__file__).parents[1], Path(os.__file__).parent)
"""The folders of the program's code, and of Python's."""


def place_of(function: Callable[..., Any]) -> str:
    """Return the text `module:function` with which another process can import a function.

    Raises InputError if the function is defined in a script or notebook, or inside another
    function.
    """
    module, name = function.__module__, function.__qualname__
    if module == "__main__" or not name.isidentifier():
        raise InputError(f"{name}: put the function in a separate file, and import it from there")
    return f"{module}:{name}"


def register(kind: str, name: str, function: Callable[..., Any]) -> None:
    """Register a user's function under a name, which parameters of this kind then accept.

    kind: one of `core.choices.KINDS`. Raises InputError for another kind, for a name that is not an
    identifier or is taken, for a class or an object where a function is needed, for an optimizer
    without a method `step`, for an architecture that is no class with `hidden` and the arguments
    NETWORK, and as `place_of` does.
    """
    if kind not in KINDS:
        raise InputError(f"{kind} cannot be registered: {nearest(kind, KINDS)}")
    if kind not in ("optimizer", "architecture"):
        _require_function(f"{kind}={name}", function)
    place, own = place_of(function), REGISTERED.setdefault(kind, {})
    if not name.isidentifier():
        raise InputError(f"{name!r} cannot be a name: use letters, digits and underscores")
    if kind == "optimizer" and not hasattr(function, "step"):
        raise InputError(f"optimizer={name}: {place} must be a class with step(gradients, rates)")
    if kind == "architecture":
        _require_architecture(f"architecture={name}", place, function)
    if name in KINDS[kind] and (name not in own or place_of(own[name]) != place):
        taken = f"is {place_of(own[name])}" if name in own else "is one of the program's"
        raise InputError(f"{kind}={name} {taken}: choose another name for {place}")
    if kind == "architecture":
        _check_hidden(f"architecture={name}", function)
    own[name] = function
    places = {
        kind: {n: place_of(f) for n, f in own.items() if n.isidentifier()}
        for kind, own in REGISTERED.items()
    }
    os.environ[NAMED] = json.dumps(places)


def _require_function(what: str, function: Any) -> None:
    """Raise InputError for a class or an object, such as a torch module."""
    if inspect.isclass(function) or not hasattr(function, "__qualname__"):
        found = function if inspect.isclass(function) else type(function)
        kind = "a class" if found is function else "an object"
        raise InputError(
            f"{what}: a function is needed, not {kind} ({found.__module__}.{found.__qualname__})."
            " Register a function that calls it, or does what its method `forward` does"
        )


NETWORK = ("channels", "classes", "norm", "multiplier")
"""The arguments with which a network is made."""


def _require_architecture(what: str, place: str, function: Callable[..., Any]) -> None:
    """Raise InputError unless a user's class can be made, and has the last hidden layer."""
    if not (inspect.isclass(function) and callable(getattr(function, "hidden", None))):
        raise InputError(
            f"{what}: {place} must be a class with hidden(x), derived from"
            " runner.networks.convolutional.ConvolutionalClassifier"
        )
    try:
        inspect.signature(function).bind(*NETWORK)
    except TypeError as error:
        signature = inspect.signature(function)
        raise InputError(
            f"{what}: the program creates this class with ({', '.join(NETWORK)}), but its signature"
            f" is {function.__name__}{signature}"
        ) from error


def _check_hidden(what: str, network: Any) -> None:
    """Let a user's class check, whenever it is called, what its last hidden layer returns."""
    hidden = getattr(network.hidden, "unchecked", network.hidden)

    @wraps(hidden)
    def checked(self: Any, x: Any) -> Any:
        result = hidden(self, x)
        if not hasattr(self, "classifier"):
            raise InputError(f"{what}: {network.__name__} has no linear layer self.classifier")
        shape = getattr(result, "shape", None)
        d = getattr(self.classifier, "in_features", None if shape is None else shape[-1])
        if shape != (len(x), d):
            found = f"an object of type {type(result).__name__}" if shape is None else tuple(shape)
            raise InputError(f"{what}: hidden(x) returned {found}, not ({len(x)}, {d})")
        if result.dtype != x.dtype:
            raise InputError(f"{what}: hidden(x) returned {result.dtype}, not {x.dtype}")
        return result

    checked.unchecked = hidden  # type: ignore[attr-defined]
    network.hidden = checked


def register_as_parent() -> None:
    """Register the functions that a parent process has registered, as an environment variable says.

    Raises InputError as `function_at` does.
    """
    for kind, places in json.loads(os.environ.get(NAMED) or "{}").items():
        for name, place in places.items():
            if name not in REGISTERED.get(kind, {}):
                register(kind, name, function_at(place))
