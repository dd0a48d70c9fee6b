"""Floating-point types with which networks can be computed."""

import torch

from runner.core.choices import lookup

DTYPES = {"float32": torch.float32, "float64": torch.float64}
"""Dtypes by their names in configurations."""


def torch_dtype(name: str) -> torch.dtype:
    """Return the torch dtype with a name in DTYPES. Raises InputError for an unknown name."""
    return lookup("dtype", name, DTYPES)
