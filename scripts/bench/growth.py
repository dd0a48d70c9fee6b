"""Growth of seconds and memory with the sizes of a study: measured runs, and their exponents.

A study's module in `studies` has GROWTH: a small configuration and the sizes that are varied. Every
run is a separate process, so that its peak memory can be measured.
"""

import multiprocessing
import resource
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from bench.timing import device
from runner.core.catalogue import module_of
from runner.core.progress import Progress
from runner.core.studies import Context, StudyConfig
from runner.data.datasets import Dataset, load
from runner.runs.machine import keep_freed_memory

OWN = 100
"""MiB below which the libraries' memory, about 25 MiB, hides the growth of a study's memory."""

PRELOADED = [
    "bench.growth",
    "torch._dynamo",
    "scipy.sparse.linalg",
    "sklearn.datasets",
    "numba",
]
"""Modules that the server imports before measured processes are forked from it.

The server does nothing else, so processes inherit no freed memory. Torch's optimizers import
`_dynamo` when they are first used.
"""


class Quiet(Progress):
    """A progress bar that shows nothing."""

    def update(self, count: int = 1, **numbers: Any) -> None:
        """Ignore the count."""
        self.n += count


def embedded(name: str, seed: int, checksums: list[str] | None = None) -> Dataset:
    """Return a dataset that needs no files."""
    return load(name, {}, None, seed, checksums)


def lent(device: torch.device) -> Context:
    """Return the context of a study outside a run: nothing is shown or stored."""
    return Context(device, None, Quiet, lambda make_state: None, embedded)


@dataclass(frozen=True)
class Growth:
    """A study's small configuration, and its sizes, which are varied one at a time.

    sizes: the smallest and the largest value of each size. A third value, their geometric mean, is
    also measured.
    """

    config: StudyConfig
    sizes: dict[str, tuple[float, float]]

    def values(self, name: str) -> list[float]:
        """Return the three values of a size, in ascending order."""
        first, last = self.sizes[name]
        middle = (first * last) ** 0.5
        return [first, round(middle) if isinstance(first, int) else middle, last]


def cost(config: StudyConfig) -> tuple[float, int]:
    """Run the study in a separate process; return its seconds, and its peak memory in bytes.

    The memory of the program without its tensors is subtracted. Raises the exception of a run that
    fails.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_measure, config).result()


def _measure(config: StudyConfig) -> tuple[float, int]:
    """Run the study in the measured process."""
    torch.set_num_threads(1)  # as in every run, like the next line
    keep_freed_memory()
    where = device()
    run = module_of(config.study).run
    if where.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    before = peak()
    start = time.perf_counter()
    with threadpool_limits(1, user_api="blas"):
        for _ in run(config, lent(where)):
            pass
    seconds = time.perf_counter() - start
    return seconds, torch.cuda.max_memory_allocated() if where.type == "cuda" else peak() - before


def peak() -> int:
    """Return the peak memory of this process in bytes (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resized(config: StudyConfig, name: str, value: float) -> StudyConfig:
    """Return the configuration with another value of one size; a list becomes `[value]`."""
    is_list = isinstance(getattr(config, name), list)
    return replace(config, **{name: [value] if is_list else value})


def exponent(sizes: list[float], costs: Sequence[float]) -> float:
    """Return the slope of log cost against log size, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def exponents(growth: Growth) -> Iterator[dict[str, Any]]:
    """Yield a row for each size: the exponent in cost ~ size^exponent, and the largest cost."""
    for name in growth.sizes:
        values = growth.values(name)
        costs = [cost(resized(growth.config, name, value)) for value in values]
        seconds, peaks = zip(*costs, strict=True)
        yield {
            "study": growth.config.study,
            "size": name,
            "first": values[0],
            "last": values[-1],
            "seconds": seconds[-1],
            "seconds_exponent": exponent(values, seconds),
            "mebibytes": peaks[-1] / 2**20,
            "memory_exponent": exponent(values, peaks) if peaks[-1] > OWN * 2**20 else np.nan,
        }
