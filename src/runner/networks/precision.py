"""The floating-point numbers that networks compute in."""

import torch

from runner.core.errors import lookup

DTYPES = {"float32": torch.float32, "float64": torch.float64}
"""By the names that configurations use."""


def torch_dtype(name: str) -> torch.dtype:
    """Return the dtype of that name. Raises InputError when it is unknown."""
    return lookup("dtype", name, DTYPES)
