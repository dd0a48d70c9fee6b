"""Functions of the user, which a configuration names as `module:function`."""

import importlib
from collections.abc import Callable
from typing import Any

from runner.core.errors import InputError, nearest


def function_at(path: str) -> Callable[..., Any]:
    """Return the function that `module:function` names.

    Raises InputError if the module cannot be imported or has no such function.
    """
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever its own code raises
        why = f"{type(error).__name__}: {error}"
        raise InputError(f"{path}: {module_name} cannot be imported ({why})") from error
    function = getattr(module, name, None)
    if not callable(function):
        hint = nearest(name, vars(module))
        raise InputError(f"{path}: {module_name} has no function {name}: {hint}")
    return function


def place_of(function: Callable[..., Any]) -> str:
    """Return `module:function` for a function, so that another process can import it.

    Raises InputError if it is defined in a script or notebook, or inside another function.
    """
    module, name = function.__module__, function.__qualname__
    if module == "__main__" or not name.isidentifier():
        raise InputError(f"{name}: put the function in a separate file, and import it from there")
    return f"{module}:{name}"
