"""The rounding of another processor: noise in the last digits of decompositions.

    with other_rounding(seed=1):
        ...  # torch.linalg, numpy.linalg and scipy.linalg have noise here

Libraries differ in the last digits of singular values, eigenvalues and solutions, and in the signs
of singular vectors. What a user reads must not depend on them.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import scipy.linalg
import scipy.optimize
import scipy.sparse.linalg
import torch
from scipy.linalg import lapack
from torch import Tensor

NOISE = {8: 1e-14, 4: 1e-6}
"""Relative noise by the bytes of a number: about 45 and 8 times its rounding."""

SOLVING = ("lstsq", "solve", "inv", "pinv", "dgetrf", "lsmr", "nnls")
"""Functions with a twentieth of the noise: claims say that their error is rounding."""

LAST_DIGIT = 4 * np.finfo(float).eps

VALUES = ("svdvals", "eigvalsh", "eigvals", "eig", "lstsq", "pinv", "qr", "solve", "inv", "cond")
SIGNED = {"svd": ((0, -1), (2, -2)), "eigh": ((1, -1),)}
"""Functions with vectors of either sign: which results have them, along which axis."""

TORCH = (*VALUES, *SIGNED, "cholesky", "cholesky_ex", "matrix_norm")
SCIPY = ("null_space", "svd", "svdvals", "qr", "lstsq", "pinv", "eigh", "eigvalsh", "solve", "inv")


def blurred(value: Any, noise: np.random.Generator, share: float = 1.0) -> Any:
    """Floats of tensors, arrays and tuples with relative noise; all else as it is.

    share: of the noise.
    """
    if isinstance(value, tuple):
        parts = [blurred(part, noise, share) for part in value]
        return value if len(parts) == 0 else _like(value, parts)
    if isinstance(value, Tensor) and value.is_floating_point():
        size = share * NOISE[value.element_size()]
        factors = 1 + size * noise.standard_normal(tuple(value.shape))
        return value * torch.as_tensor(factors, dtype=value.dtype, device=value.device)
    if isinstance(value, np.ndarray | np.floating) and value.dtype.kind == "f":
        size = share * NOISE[value.itemsize]
        return value * (1 + size * noise.standard_normal(np.shape(value)))
    return value


def turned(name: str, value: Any, noise: np.random.Generator) -> Any:
    """A decomposition with other signs of its vectors, as valid as before."""
    if name not in SIGNED or not isinstance(value, tuple) or len(value) == 1:
        return value
    parts = list(value)
    count = min(parts[index].shape[axis] for index, axis in SIGNED[name])
    signs = noise.choice([-1.0, 1.0], count)
    for index, axis in SIGNED[name]:
        of_all = np.ones(parts[index].shape[axis])
        of_all[:count] = signs
        of_all = of_all[:, None] if axis == -2 else of_all
        is_tensor = isinstance(parts[index], Tensor)
        parts[index] = parts[index] * (
            torch.as_tensor(of_all, dtype=parts[index].dtype) if is_tensor else of_all
        )
    return _like(value, parts)


def _like(value: tuple, parts: list) -> tuple:
    if type(value) is tuple:
        return tuple(parts)
    return value._make(parts) if hasattr(value, "_make") else type(value)(parts)


def _noisy(name: str, function: Callable, noise: np.random.Generator) -> Callable:
    share = 0.05 if name in SOLVING else 1.0

    @wraps(function)
    def with_noise(*arguments: Any, **options: Any) -> Any:
        return blurred(turned(name, function(*arguments, **options), noise), noise, share)

    return with_noise


@contextmanager
def other_rounding(seed: int) -> Iterator[None]:
    """Give all decompositions noise, which is the same each time.

    Modules of the package that imported a function by its name have it with noise, too.
    """
    noise = np.random.default_rng(seed)
    places: list[tuple[ModuleType, tuple[str, ...]]] = [
        (torch.linalg, TORCH),
        (np.linalg, (*VALUES, *SIGNED, "cholesky")),
        (scipy.linalg, SCIPY),
        (lapack, ("dgetrf",)),
        (scipy.sparse.linalg, ("eigsh", "lsmr")),
        (scipy.optimize, ("nnls",)),
    ]
    changed = {}
    for module, names in places:
        for name in names:
            if hasattr(module, name):
                function = getattr(module, name)
                changed[function] = _noisy(name, function, noise)
    users = ("runner.", "numpy.lib.", "numpy.linalg", "scipy.linalg", "torch.linalg")
    with ExitStack() as stack:
        for name, module in [*sys.modules.items()]:
            if module is not None and f"{name}.".startswith(users):
                for key, value in [*vars(module).items()]:
                    if callable(value) and _hashable(value) and value in changed:
                        stack.enter_context(patch.object(module, key, changed[value]))
        yield


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def blurred_tables(
    tables: dict[str, pd.DataFrame], measured: dict[str, set[str]], seed: int
) -> dict[str, pd.DataFrame]:
    """Tables with other last digits of their measured numbers.

    Equal numbers stay equal, and whole numbers as they are. measured: names of columns by table.
    """
    result = {}
    for name, rows in tables.items():
        changes = {}
        for column in (c for c in rows if c in measured[name] and rows[c].dtype.kind == "f"):
            values = rows[column].to_numpy(float)
            others = values * (1 + LAST_DIGIT * _shares(values, seed))
            changes[column] = np.where(values == values.round(), values, others)
        result[name] = rows.assign(**changes)
    return result


def _shares(values: np.ndarray, seed: int) -> np.ndarray:
    """A number between -1 and 1 for each value, which its bits decide."""
    mixed = (values.view(np.uint64) + np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed / 2.0**63 - 1
