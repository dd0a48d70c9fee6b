"""Loops compiled for the CPU."""

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import numba

REORDERED = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be taken in the order that vectors like. nan and inf stay what they are."""


def compiled(function: Callable, **options: Any) -> Callable:
    """A function of arrays and numbers, compiled when it is first called and kept on the disk,
    where there is a folder for it.

    Division by zero gives inf or nan. options: of `numba.njit`. What is kept is compiled anew when
    the function's own file changes, and no other.
    """
    compiler = {"error_model": "numpy", "nogil": True} | options
    bare = unwrap(function)  # without the checks of types that the tests add
    try:
        return numba.njit(cache=True, **compiler)(bare)
    except RuntimeError:  # no folder can be written
        return numba.njit(**compiler)(bare)


def one_pass(function: Callable) -> Callable:
    """The same for a loop that goes over its arrays once, between two products."""
    return compiled(function, fastmath=REORDERED)
