"""Loops compiled for the CPU."""

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import numba

REORDERED = {"reassoc", "contract", "nsz", "arcp"}
"""Flags with which numba may change the order of sums, so that vector instructions can be used.
They do not affect nan and inf."""


def compiled(function: Callable, **options: Any) -> Callable:
    """Return a function of arrays and numbers that numba compiles when it is first called.

    Division by zero gives inf or nan. options: further options of `numba.njit`.

    The machine code is stored on the disk if numba finds a folder that can be written. It is
    compiled again after the function's file has changed, but not after changes of other files. All
    functions that `function` calls must therefore be in the same file.
    """
    options = {"error_model": "numpy", "nogil": True} | options
    bare = unwrap(function)  # without the checks of types that the tests add
    try:
        return numba.njit(cache=True, **options)(bare)
    except RuntimeError:  # no folder can be written
        return numba.njit(**options)(bare)


def one_pass(function: Callable) -> Callable:
    """Return a function with loops over arrays, compiled so that the order of sums may change.

    The processor can then use its vector instructions.
    """
    return compiled(function, fastmath=REORDERED)
