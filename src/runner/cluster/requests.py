"""What tasks ask for: by what their runs took before, or by a first step that is computed here."""

import logging
import math
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from runner.runs.costs import expected_seconds, taken

if TYPE_CHECKING:
    from runner.cli.composing import Job

log = logging.getLogger("runner")

PACK_SECONDS = 300
"""Shorter runs share a task until it takes so long: starting one costs some five seconds."""

SMOKE_SECONDS = 10
"""What a run at scale smoke takes at most, where nothing else is known."""

SLOWER, LARGER = 3, 1.3
"""How many times the time and the memory of before a run may take: nodes and company differ."""

MINUTES = (15, 60, 240, 1440)
"""Time limits that are asked for: the fewer, the fewer arrays. Longer runs are queued again."""

UNKNOWN_MINUTES, UNKNOWN_GIBIBYTES = 240, 8

GIBIBYTE = 2**30

LEAST_GIBIBYTES, GPU_GIBIBYTES = 2, 4
"""Libraries reserve more than they fill; those of a GPU come beside what was measured without."""

MEASURED_SECONDS = 20
"""How long a first step is waited for."""

CHILD = "import pickle, sys; compute, job = pickle.load(sys.stdin.buffer); compute(job)"


def packed(
    jobs: Mapping[str, "Job"], gibibytes: Mapping[str, int], minutes: int, most_seconds: float
) -> dict[tuple[int, int], list[list[str]]]:
    """Return the tasks that jobs make, as lists of labels, by the minutes and GiB they ask for.

    Short ones of one memory share a task. minutes: the time limit, 0 where it is open;
    most_seconds: how long a shared task takes.
    """
    seconds = {label: _seconds(job) for label, job in jobs.items()}
    packs: list[list[str]] = []
    for label in sorted(jobs, key=gibibytes.__getitem__):
        before = packs[-1] if packs and gibibytes[packs[-1][0]] == gibibytes[label] else []
        if before and sum(map(seconds.get, before)) + seconds[label] <= most_seconds:
            before.append(label)
        else:
            packs.append([label])
    found: dict[tuple[int, int], list[list[str]]] = {}
    for pack in packs:
        limit = minutes or _minutes(sum(map(seconds.get, pack)))
        found.setdefault((limit, gibibytes[pack[0]]), []).append(pack)
    return found


def _seconds(job: "Job") -> float:
    known = expected_seconds(job.run)
    return SMOKE_SECONDS if math.isinf(known) and job.settings.scale == "smoke" else known


def _minutes(seconds: float) -> int:
    """Return the time limit for work of so many seconds; inf: not known."""
    if math.isinf(seconds):
        return UNKNOWN_MINUTES
    return next((limit for limit in MINUTES if 60 * limit > SLOWER * seconds), MINUTES[-1])


def memory(
    jobs: Mapping[str, "Job"], compute: Callable[["Job"], object], on_gpu: bool
) -> dict[str, int]:
    """Return the GiB that jobs ask for, powers of two, by label.

    Where no peak is known, the largest of those jobs of its study is measured here by `compute`.
    """
    peaks = {label: taken(job.run, "peak_memory_bytes") for label, job in jobs.items()}
    unknown = [label for label in jobs if not peaks[label]]
    for study in {jobs[label].config.study for label in unknown}:
        some = [label for label in unknown if jobs[label].config.study == study]
        largest = max((jobs[label] for label in some), key=_size)
        log.info("memory: a first step is measured here, of %s", largest.run)
        peaks |= dict.fromkeys(some, first_peak(largest, compute))
    return {label: _gibibytes(peak, on_gpu) for label, peak in peaks.items()}


def _gibibytes(peak: float, on_gpu: bool) -> int:
    if not peak:
        return UNKNOWN_GIBIBYTES
    need = LARGER * peak / GIBIBYTE + GPU_GIBIBYTES * on_gpu
    return 2 ** math.ceil(math.log2(max(need, LEAST_GIBIBYTES)))


def _size(job: "Job") -> int:
    """Return a number that is large where a run is: the product of its whole numbers."""
    values = (value for name, value in vars(job.config).items() if name != "seed")
    return math.prod(value for value in values if isinstance(value, int) and value > 0)


def first_peak(job: "Job", compute: Callable[["Job"], object]) -> int:
    """Return the bytes that a run takes here until a second after its first checkpoint.

    They are those of a process of its own, libraries included. 0: it cannot be computed here.
    """
    peak = 0
    with TemporaryDirectory() as folder:
        here = {"outputs": folder, "device": "cpu", "checkpoint_seconds": 0, "tracker": None}
        job = replace(job, settings=replace(job.settings, **here))
        command = [sys.executable, "-c", CHILD]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            child.stdin.write(pickle.dumps((compute, job)))
            child.stdin.close()
            end = time.monotonic() + MEASURED_SECONDS
            while child.poll() is None and time.monotonic() < end:
                with suppress(OSError):
                    status = Path(f"/proc/{child.pid}/status").read_text()
                    peak = max(peak, *map(int, re.findall(r"VmHWM:\s*(\d+) kB", status)), 0)
                if any(Path(folder).glob("runs/*/*/checkpoint.safetensors")):
                    end = min(end, time.monotonic() + 1)
                time.sleep(0.02)
            code = child.poll()
            child.kill()
    return 0 if code else 1024 * peak
