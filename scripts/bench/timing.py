"""Timing of the same work by a baseline and by this project.

A study's module in `studies` has `compare()`, which yields Comparisons. It first checks that both
programs give the same numbers. Times are medians of several repetitions in one process, with one
thread as in every run. Only their ratios can be compared between machines.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Comparison:
    """A row of the benchmark table: times in seconds for the same work.

    floor: the time of the arithmetic that no program can avoid, at the measured speed of this
    machine.
    """

    study: str
    work: str
    baseline: float
    ours: float
    floor: float
    dtype: str = "float32"

    def as_row(self) -> dict[str, object]:
        """Return the comparison as a row with its two ratios."""
        return {
            **asdict(self),
            "speedup": self.baseline / self.ours,
            "share_of_floor": self.floor / self.ours,
        }


def device() -> torch.device:
    """Return the GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def machine_name(described: dict[str, Any]) -> str:
    """Return a short name of a machine. described: the machine's entry in `provenance.json`."""
    gpu = f" and {described['device_name']}" if described["device"] != "cpu" else ""
    rates = (described[f"{dtype}_gflops"] for dtype in ("float32", "float64"))
    float32, float64 = (f"{rate:.0f}" for rate in rates)
    return f"{described['processor']}{gpu}: {float32} / {float64} GFLOP/s"


def synchronize() -> None:
    """Wait for the GPU if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def median_seconds(work: Callable[[], object], repetitions: int = 5) -> float:
    """Return the median time of one call in seconds, after one call to warm up."""
    work()
    synchronize()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def matrix_rate(dtype: torch.dtype, device: str = "cpu", n: int = 1024) -> float:
    """Return the FLOP per second of a large square matrix product."""
    a = torch.randn(n, n, device=device).to(dtype)
    return 2 * n**3 / median_seconds(lambda: a @ a, 9)


def normal_rate(device: str = "cpu", numbers: int = 2**20) -> float:
    """Return how many standard normal numbers are drawn per second, in float32."""
    drawn = torch.empty(numbers, device=device)
    return numbers / median_seconds(drawn.normal_, 9)
