"""Let formulas for tensors accept what a notebook has: numpy arrays, integers, mixed precisions.

This is the one module of `core` that imports torch: only modules with formulas import it.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import reduce, wraps
from typing import Any, TypeVar, cast, no_type_check

import numpy as np
import torch
from torch import Tensor

from runner.core.errors import InputError

Function = TypeVar("Function", bound=Callable)


def takes_arrays(dtype: torch.dtype | None = None, detach: bool = False) -> Callable:
    """Return a decorator for a function of tensors, which then also accepts numpy arrays.

    Tensors of one floating dtype are passed on as they are. Else every argument becomes a tensor,
    also inside lists, tuples and dataclasses: integers become float64, and all tensors get the
    widest dtype among them. Arrays of mpmath numbers stay. The function's result is never changed.

    - dtype: the dtype of all arguments; None: the widest.
    - detach: for functions that do not compute with autograd: drop the gradients.

    The function raises InputError for an array that does not hold real numbers.
    """

    def decorate(function: Function) -> Function:
        @no_type_check  # the function checks its tensors, not this wrapper
        @wraps(function)
        def accepting(*values: Any, **named: Any) -> Any:
            found = [*_arrays((values, named))]
            if not _alike(found, dtype) or (detach and any(array.requires_grad for array in found)):
                values, named = as_tensors((values, named), dtype, detach)
            return function(*values, **named)

        return cast(Function, accepting)

    return decorate


def as_tensors(values: Any, dtype: torch.dtype | None = None, detach: bool = False) -> Any:
    """Return a value with all its arrays as tensors of one floating dtype.

    values: an array, or a list, tuple, dictionary or dataclass with arrays. dtype, detach: as in
    `takes_arrays`. Raises InputError as described there.
    """
    tensors = {id(array): _tensor(array) for array in _arrays(values)}
    dtypes = [tensor.dtype for tensor in tensors.values() if isinstance(tensor, Tensor)]
    wide = dtype or (reduce(torch.promote_types, dtypes) if dtypes else None)

    def changed(value: Any) -> Any:
        tensor = tensors.get(id(value))
        if isinstance(tensor, Tensor):
            return (tensor.detach() if detach else tensor).to(wide)
        if isinstance(value, list | tuple | dict) or _is_record(value):
            return _rebuilt(value, changed)
        return value

    return changed(values)


def _is_record(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a list, tuple, dictionary or dataclass with its items changed."""
    if isinstance(value, dict):
        return {key: change(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [change(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return replace(
        value, **{item.name: change(getattr(value, item.name)) for item in fields(value)}
    )


def _arrays(value: Any) -> Iterator[Any]:
    """Yield the tensors and arrays in a value, also of its items and fields."""
    if isinstance(value, Tensor | np.ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, dict):
        yield from _arrays([*value.values()])
    elif _is_record(value):
        yield from _arrays([*vars(value).values()])
    elif hasattr(value, "to_numpy"):  # a column or a table of pandas
        yield value


def _alike(found: list[Any], dtype: torch.dtype | None) -> bool:
    """Return whether all are tensors of one floating dtype: `dtype`, unless it is None."""
    if not found:
        return True
    if not isinstance(found[0], Tensor):
        return False
    dtype = dtype or found[0].dtype
    return dtype.is_floating_point and all(
        isinstance(array, Tensor) and array.dtype == dtype for array in found
    )


def _tensor(array: Any) -> Tensor | np.ndarray:
    """Return an array as a tensor with a floating dtype; an array of mpmath numbers as it is."""
    if not isinstance(array, Tensor):
        array = array if isinstance(array, np.ndarray) else array.to_numpy()
        if array.dtype == object and all(hasattr(number, "_mpf_") for number in array.flat):
            return array
        if array.dtype.kind not in "fiub":
            raise InputError(f"an array of {array.dtype} is given: give real numbers")
        array = torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C"))
    if array.is_complex():
        raise InputError(f"a tensor of {array.dtype} is given: give real numbers")
    return array if array.is_floating_point() else array.double()
