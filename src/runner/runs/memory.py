"""Memory: whether a run fits, asked before it starts.

A study's `study.py` gives `memory(config)`, the bytes that its tensors take at the peak, by
formula. `make bench` measures the same peaks.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runner.core.errors import InputError
from runner.core.studies import StudyConfig, module_of

if TYPE_CHECKING:
    import torch

PROGRAM = 400 * 2**20
"""Bytes of Python with torch and a study, before its first tensor."""

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""What a container or a cluster's job may use."""

UNLIMITED = 2**40
"""A parameter that may be as large as this is not what fills the memory."""


def needed(config: StudyConfig) -> int:
    """Bytes of the study's tensors at the peak of a run, by formula; 0 where it has none."""
    formula = getattr(module_of(config.study), "memory", None)
    return formula(config) if formula else 0


def available(device: "torch.device") -> int:
    """Bytes that a run can fill: the GPU's memory, or this machine's without the program itself."""
    import torch  # late: checking a configuration needs none of it

    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such limit
        total = min(total, int(CGROUP_LIMIT.read_text()))
    return total - PROGRAM


def require(config: StudyConfig, device: "torch.device") -> None:
    """Raise InputError when the run will not fit, with the sizes of the parameters that would."""
    limit, size = available(device), needed(config)
    if size <= limit:
        return
    advice = [
        f"{name}={value}"
        for name in sizes(config)
        if (value := largest(config, name, limit)) is not None and value < scalar(config, name)
    ]
    hint = " or ".join(advice) if advice else "smaller sizes"
    raise InputError(
        f"study={config.study} needs about {size / 2**30:.1f} GiB at these sizes, {device} has"
        f" {limit / 2**30:.1f} GiB: {hint} would fit"
    )


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
