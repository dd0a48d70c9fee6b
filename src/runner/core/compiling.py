"""Loops compiled for the CPU."""

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import numba

REORDERED = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be taken in the order that vectors like. nan and inf stay what they are."""


def compiled(function: Callable, **options: Any) -> Callable:
    """Return a function of arrays and numbers, compiled when it is first called.

    The machine code is stored on the disk, where numba finds a folder for it, and compiled anew
    when the file of the function changes. What the function calls must therefore stand in the same
    file. Division by zero gives inf or nan. options: of `numba.njit`.
    """
    options = {"error_model": "numpy", "nogil": True} | options
    bare = unwrap(function)  # without the checks of types that the tests add
    try:
        return numba.njit(cache=True, **options)(bare)
    except RuntimeError:  # no folder can be written
        return numba.njit(**options)(bare)


def one_pass(function: Callable) -> Callable:
    """Compile a loop that goes over its arrays once, between two products."""
    return compiled(function, fastmath=REORDERED)
