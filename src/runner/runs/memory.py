"""Memory: whether a run fits, asked before it starts, and what would fit where one did not.

A study's `study.py` gives `memory(config)`, the bytes that its tensors take at the peak, by
formula. `make bench` measures the same peaks.
"""

import errno
import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from runner.core.catalogue import module_of
from runner.core.errors import InputError
from runner.core.studies import StudyConfig
from runner.runs import limits

if TYPE_CHECKING:
    import torch

UNLIMITED = 2**40
"""A parameter that may be as large as this is not what fills the memory."""

GAPS = 1.15
"""What tensors take over their own bytes: the allocator's gaps between them."""

LIBRARIES = 64 * 2**20
"""Bytes that libraries take for themselves when a run first uses them."""

MESSAGES = (
    "can't allocate memory",
    "not enough memory",
    "bad_alloc",
    "could not create a primitive",
    "STATUS_ALLOC_FAILED",
)
"""How those complain that have no exception of their own: torch's allocators for the CPU, the
standard library of C++, oneDNN, cuDNN, cuBLAS."""


def needed(config: StudyConfig) -> int:
    """Bytes that a run takes at the peak, by its study's formula; 0 where it has none."""
    formula = getattr(module_of(config.study), "memory", None)
    return LIBRARIES + int(GAPS * formula(config)) if formula else 0


def available(device: "torch.device", abreast: int = 1) -> int:
    """Bytes that each of `abreast` runs side by side can fill beside the program as it is now.

    On a GPU also those of the host, since the formulas do not say which tensors are where: what is
    refused fits nowhere.
    """
    occupied, process = limits.Occupied.now(), limits.process_bytes()
    free = limits.host_bytes() // abreast - occupied.resident
    if process is not None:
        free = min(free, process - occupied.addresses)
    if device.type == "cuda":
        import torch  # late: checking a configuration needs none of it

        share = min(1.0, torch.cuda.device_count() / abreast)
        free += int(share * torch.cuda.get_device_properties(device).total_memory)
    return free


def require(config: StudyConfig, device: "torch.device", abreast: int = 1) -> None:
    """Raise InputError when the run will not fit, with the sizes of the parameters that would.

    abreast: how many runs share the memory.
    """
    limit, size = available(device, abreast), needed(config)
    if size > limit:
        each = f" for each of {abreast} runs side by side" if abreast > 1 else ""
        raise InputError(
            f"study={config.study} needs about {size / 2**30:.1f} GiB at these sizes, {device} has"
            f" {limit / 2**30:.1f} GiB{each}: {advice(config, limit)} would fit"
        )


def capped(device: "torch.device") -> AbstractContextManager[None]:
    """Have the run fail by an exception at the end of the memory, where the CPU computes."""
    if device.type != "cpu" or not limits.STATM.exists():
        return nullcontext()
    return limits.capped(limits.Occupied.now().data + max(0, available(device)))


def is_exhausted(error: BaseException) -> bool:
    """Whether the error says that there is no memory left, on a GPU or on the host."""
    import torch  # late, as above

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(text in str(error) for text in MESSAGES)


def exhausted(config: StudyConfig, device: "torch.device") -> InputError:
    """What to say of a run that ran out of memory; frees what it has left."""
    import torch  # late, as above

    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    size = needed(config)
    hint = f"{advice(config, size // 2)} would take half" if size else "smaller sizes take less"
    return InputError(
        f"study={config.study} ran out of memory on {device}, where it needs about"
        f" {size / 2**30:.1f} GiB at these sizes: {hint}"
    )


def advice(config: StudyConfig, limit: int) -> str:
    """The sizes with any one of which the run takes at most `limit` bytes."""
    found = [
        f"{name}={value}"
        for name in sizes(config)
        if (value := largest(config, name, limit)) is not None and value < scalar(config, name)
    ]
    return " or ".join(found) or "smaller sizes"


def sizes(config: StudyConfig) -> list[str]:
    """The names of the parameters that are whole numbers, or lists of one whole number."""
    return [item.name for item in fields(config) if scalar(config, item.name) is not None]


def scalar(config: StudyConfig, name: str) -> int | None:
    """The parameter as a number, where it is one whole number."""
    value = getattr(config, name)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def resized(config: StudyConfig, name: str, value: float) -> StudyConfig:
    """The configuration with another size. Raises InputError when that is outside its range."""
    many = isinstance(getattr(config, name), list)
    return replace(config, **{name: [value] if many else value})


def largest(config: StudyConfig, name: str, limit: int) -> int | None:
    """The largest value of a size with which the run takes at most `limit` bytes.

    None where no value fits, or any does, or where it is no whole number.
    """

    def fits(value: int) -> bool:
        try:
            return needed(resized(config, name, value)) <= limit
        except InputError:
            return False

    if name not in sizes(config):
        return None
    low = high = scalar(config, name)
    while low >= 1 and not fits(low):
        low, high = low // 2, low
    if low < 1:
        return None
    while high == low or fits(high):
        low, high = high, 2 * high
        if high > UNLIMITED:
            return None
    return _last(fits, low, high)


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number for which `holds`, which it does at `low` and does not at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
