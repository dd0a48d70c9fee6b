"""Calls of the user's functions: their random numbers, and a check of what they return.

A user's function may draw from the global generators of torch, numpy and Python. Around each call
they are seeded by the run's seed, the replicate, the function, and the step of the training. So the
same command gives the same tables, also after an interruption. After the run the generators have
their earlier states.
"""

import hashlib
import inspect
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import torch

from runner.core.choices import REGISTERED, lookup
from runner.core.errors import InputError

ARGUMENTS = {
    "activation": ("Z",),
    "normalization": ("Z",),
    "law": ("tensor", "generator"),
    "init": ("outputs", "inputs", "generator"),
}
"""The arguments of the user's functions, by kind. Classes are checked where they are used."""

LOCK = threading.RLock()
"""Held by a thread that has seeded the global generators."""


class _Position:
    """Where a run is: its seed, a replicate, a step, and the calls of each function since then."""

    def __init__(self) -> None:
        self.seed, self.replicate, self.step = 0, 0, 0
        self.calls: Counter[str] = Counter()
        self.is_needed = False  # whether a user's function has been looked up
        self.is_running = False  # whether a run restores the generators at its end


_now = _Position()


@contextmanager
def run_of(seed: int) -> Iterator[None]:
    """Seed the global generators within the block, which computes a run of this seed."""
    global _now
    before, _now = _now, _Position()
    _now.seed, _now.is_running = seed, True
    try:
        with _restored():
            _seed(_digest(seed))
            _seed_gpu(_digest(seed))
            yield
    finally:
        _now = before


@contextmanager
def _restored() -> Iterator[None]:
    """Give the global generators after the block the states that they have before it."""
    of_gpu = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None
    of_torch, of_numpy, of_python = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(of_torch)
        np.random.set_state(of_numpy)
        random.setstate(of_python)
        if of_gpu is not None:
            torch.cuda.set_rng_state(of_gpu)


def at(replicate: int, step: int) -> None:
    """Seed the global generators for a step of the training, if the run has a user's function.

    A training loop calls this function where it begins or continues, and after each checkpoint.
    """
    _now.replicate, _now.step = replicate, step
    _now.calls.clear()
    if _now.is_needed or REGISTERED:
        number = _digest(_now.seed, replicate, step)
        _seed(number)
        _seed_gpu(number)


@contextmanager
def seeded(*key: object) -> Iterator[None]:
    """Seed the global generators by a key within the block; restore them afterwards.

    Within a run they are restored at its end only, since this takes 0.2 milliseconds.
    """
    with LOCK, nullcontext() if _now.is_running else _restored():
        _seed(_digest(*key))
        yield


@contextmanager
def call_of(kind: str, name: str, *more: object) -> Iterator[None]:
    """Seed the global generators for one call of a user's function.

    kind, name: the parameter and its value, such as `normalization` and `max_norm`. more: what else
    tells this call from others; without it the calls since the last step are counted.
    """
    _now.is_needed = True
    which = f"{kind}={name}"
    if not more:
        _now.calls[which] += 1
        more = _now.replicate, _now.step, _now.calls[which]
    with seeded(_now.seed, which, *more):
        yield


def _digest(*key: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big") >> 1


def _seed(number: int) -> None:

    torch.default_generator.manual_seed(number)
    np.random.seed(number % 2**32)
    random.seed(number)


def _seed_gpu(number: int) -> None:
    """Seed the generator of the GPU in use, once a step: a captured step draws as the first did."""

    if torch.cuda.is_initialized():
        torch.cuda.manual_seed(number)


T = TypeVar("T")


def method_of(kind: str, name: str, known: Mapping[str, T]) -> T:
    """Return the value of a name in the table `known`, or the user's function, see `checked`.

    kind: a key of ARGUMENTS. Raises InputError for an unknown name, and as `checked` does.
    """
    found: Any = lookup(kind, name, known)
    if name in REGISTERED.get(kind, {}):
        found = checked(kind, name, found)
    return found


def checked(kind: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's function with seeded random numbers, whose results are checked.

    kind: a key of ARGUMENTS. name: the value of the parameter, for messages. Raises InputError if
    the function takes other arguments. A call raises InputError if the result has another type,
    shape or dtype than the kind needs.
    """
    _now.is_needed = True
    require_arguments(f"{kind}={name}", function, ARGUMENTS[kind])
    has_generator = ARGUMENTS[kind][-1] == "generator"

    @wraps(function)
    def call(*arguments: Any) -> Any:
        expected = None if kind == "init" else _form(arguments[0])
        if not has_generator:
            with call_of(kind, name):
                result = function(*arguments)
        else:
            result = _drawn(kind, name, function, arguments)
        if kind == "init":
            _require_layer(f"{kind}={name}", result, *arguments[:2])
        elif (found := _form(result)) != expected:
            raise InputError(f"{kind}={name} returned {_difference(found, expected)}")
        return result

    return call


def _drawn(kind: str, name: str, function: Callable[..., Any], arguments: tuple) -> Any:
    """Return the result of a function whose last argument is a random generator.

    The state of this generator also seeds the global generators. A function that draws nothing from
    it gets another state in its next call.
    """
    stream = arguments[-1]
    before = stream.get_state()
    with call_of(kind, name, hashlib.sha256(before.numpy().tobytes()).hexdigest()):
        result = function(*arguments)
    if before.equal(stream.get_state()):
        torch.rand((), generator=stream)
    return result


def require_arguments(what: str, function: Callable[..., Any], names: tuple[str, ...]) -> None:
    """Raise InputError if a user's function cannot be called with as many arguments as names."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # compiled functions need not tell
        return
    try:
        signature.bind(*names)
    except TypeError as error:
        text = f"{getattr(function, '__name__', 'it')}{signature}"
        raise InputError(
            f"{what} is called with ({', '.join(names)}), but its signature is {text}"
        ) from error


Form = tuple[str, str] | str
"""Shape and dtype of a tensor, or the type of another object."""


def _form(value: Any) -> Form:

    if not isinstance(value, torch.Tensor):
        return "None" if value is None else f"an object of type {type(value).__name__}"
    return str(tuple(value.shape)), f"{value.dtype} on {value.device}"


def _difference(found: Form, expected: Any) -> str:
    """Return the words for a wrong result: `(1, 1, 16), not (1, 4, 16)`."""
    if isinstance(found, str):
        return f"{found}, not a tensor {expected[0]}"
    index = 0 if found[0] != expected[0] else 1
    return f"{found[index]}, not {expected[index]}"


def _require_layer(what: str, result: Any, n_out: int, n_in: int) -> None:
    """Raise InputError if a result is not the weights (out, in) and biases (out,) of a layer."""

    if not isinstance(result, tuple | list) or len(result) != 2:
        found = f"{len(result)} values" if isinstance(result, tuple | list) else _form(result)
        found = found if isinstance(found, str) else f"one tensor {found[0]}"
        raise InputError(f"{what} returned {found}, not weights and biases")
    for part, tensor, shape in zip(("weights", "biases"), result, ((n_out, n_in), (n_out,)),
                                   strict=True):  # fmt: skip
        if not isinstance(tensor, torch.Tensor):
            raise InputError(f"{what} returned {_form(tensor)} as {part}, not a tensor {shape}")
        if tensor.shape != shape:
            raise InputError(f"{what} returned {part} {tuple(tensor.shape)}, not {shape}")
        if not tensor.is_floating_point():
            raise InputError(f"{what} returned {part} of {tensor.dtype}, not of torch.float64")
