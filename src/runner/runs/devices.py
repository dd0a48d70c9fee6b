"""Which device a run computes on, and in which floating-point numbers."""

import re

import torch

from runner.core.errors import InputError, lookup

DTYPES = {"float32": torch.float32, "float64": torch.float64}
"""By the names that configurations use."""


def torch_dtype(name: str) -> torch.dtype:
    """The dtype of that name. Raises InputError when it is unknown."""
    return lookup("dtype", name, DTYPES)


def torch_device(name: str) -> torch.device:
    """The device of that name; `auto` is CUDA where there is one, the CPU otherwise.

    Raises InputError when the name is unknown or the device is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,4})?", name):
        raise InputError(f"device={name} is not known: choose from auto, cpu, cuda, cuda:<number>")
    kind, _, index = name.partition(":")
    if kind == "cuda" and int(index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"device={name} is not there: torch sees {torch.cuda.device_count()} CUDA devices."
            " Use device=auto or device=cpu."
        )
    return torch.device(name)


def next_gpu(name: str, turn: int, n_jobs: int) -> str:
    """The device for one job of several: the GPUs of a machine take turns where jobs run abreast.

    name: as typed; only `auto` is changed. turn: number of the job; n_jobs: how many run abreast.
    """
    number = torch.cuda.device_count()
    if name != "auto" or number < 2 or n_jobs == 1:
        return name
    return f"cuda:{turn % number}"
