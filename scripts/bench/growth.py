"""How seconds and memory grow with the sizes of a study: measured runs, and exponents of them.

A study's module in `studies` holds GROWTH: a small configuration and the sizes to vary, each with
the values that it takes. Every run is a process of its own, whose peak memory is its own.
"""

import multiprocessing
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log
from multiprocessing.connection import Connection
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
"""MiB below which the libraries' own memory, about 25 MiB, hides how that of a study grows."""

PRELOADED = [
    "bench.growth",
    "torch._dynamo",
    "scipy.sparse.linalg",
    "sklearn.datasets",
    "numba",
]
"""What the server imports that measured processes are forked from. It does nothing else, so that
they inherit no freed memory. Torch's optimizers import `_dynamo` when they are first used."""


class Quiet(Progress):
    """Progress that nobody watches."""

    def update(self, count: int = 1, **numbers: Any) -> None:
        """Count, and show nothing."""
        self.done += count


def embedded(name: str, seed: int, checksums: list[str] | None = None) -> Dataset:
    """A dataset that needs no files."""
    return load(name, {}, None, seed, checksums)


def lent(device: torch.device) -> Context:
    """What a run lends to its study, where there is no run: nothing is shown and nothing kept."""
    return Context(device, None, Quiet, lambda make_state: None, embedded)


@dataclass(frozen=True)
class Growth:
    """A study's small configuration, and the values of the sizes to vary, one at a time."""

    config: StudyConfig
    sizes: dict[str, list[float]]


@dataclass(frozen=True)
class Cost:
    """What one run took, in seconds and in bytes above the program without its tensors."""

    seconds: float
    bytes: int


@dataclass(frozen=True)
class Exponents:
    """One row of the table: cost ~ size^exponent between the first and the last value."""

    study: str
    size: str
    first: float
    last: float
    seconds: float  # at the last value
    seconds_exponent: float
    mebibytes: float  # at the last value
    memory_exponent: float  # nan below `OWN`


def cost(config: StudyConfig) -> Cost:
    """Run the study in a process of its own and measure it; raises RuntimeError when it fails."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    own, others = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(config, others))
    process.start()
    others.close()
    try:
        return own.recv()
    except EOFError as error:
        raise RuntimeError(f"{config} could not be measured: see its error above") from error
    finally:
        process.join()


def _run(config: StudyConfig, answer: Connection) -> None:
    """The measured process."""
    torch.set_num_threads(1)  # as every run, and the next line
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
    taken = torch.cuda.max_memory_allocated() if where.type == "cuda" else peak() - before
    answer.send(Cost(seconds, taken))


def peak() -> int:
    """The most bytes that this process has had in memory (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resized(config: StudyConfig, name: str, value: float) -> StudyConfig:
    """The configuration with another size; of a list it is the only value."""
    is_list = isinstance(getattr(config, name), list)
    return replace(config, **{name: [value] if is_list else value})


def exponent(sizes: list[float], costs: list[float]) -> float:
    """The slope of log cost against log size, by least squares."""
    return float(np.polyfit([log(size) for size in sizes], [log(each) for each in costs], 1)[0])


def exponents(growth: Growth) -> Iterator[Exponents]:
    """Measure every size of a growth at each of its values."""
    for name, values in growth.sizes.items():
        configs = [resized(growth.config, name, value) for value in values]
        costs = [cost(config) for config in configs]
        seconds = [each.seconds for each in costs]
        peaks = [float(each.bytes) for each in costs]
        yield Exponents(
            study=growth.config.study,
            size=name,
            first=values[0],
            last=values[-1],
            seconds=seconds[-1],
            seconds_exponent=exponent(values, seconds),
            mebibytes=peaks[-1] / 2**20,
            memory_exponent=exponent(values, peaks) if peaks[-1] > OWN * 2**20 else float("nan"),
        )
