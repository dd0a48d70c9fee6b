"""Loops compiled for the CPU."""

from collections.abc import Callable
from inspect import unwrap
from typing import Any

import numba

REORDERED = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be taken in the order that vectors like. nan and inf stay what they are."""


def compiled(function: Callable, **options: Any) -> Callable:
    """Return a function of arrays and numbers that numba compiles when it is first called.

    The machine code is stored on the disk if numba finds a folder that can be written. It is
    compiled again after the function's file has changed, but not after changes of other files.
    Functions that it calls must therefore be in the same file. Division by zero gives inf or nan.
    options: further options of `numba.njit`.
    """
    options = {"error_model": "numpy", "nogil": True} | options
    bare = unwrap(function)  # without the checks of types that the tests add
    try:
        return numba.njit(cache=True, **options)(bare)
    except RuntimeError:  # no folder can be written
        return numba.njit(**options)(bare)


def one_pass(function: Callable) -> Callable:
    """Return a compiled loop over arrays, in which sums may be taken in another order.

    The order may be changed so that the processor's vector instructions can be used.
    """
    return compiled(function, fastmath=REORDERED)
