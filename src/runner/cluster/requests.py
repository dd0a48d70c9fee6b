"""What tasks ask for: by what their runs took before, or by a first step that is computed here."""

import logging
import math
import multiprocessing
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from runner.runs.costs import of_reference
from runner.runs.jobs import Job, complete
from runner.runs.run import Run

log = logging.getLogger("runner")

MEASURED_SECONDS = 20
"""How long a first step is waited for."""

SMOKE_SECONDS, UNKNOWN_SECONDS = 10, 4000
"""What runs take of which nothing is known, at scale smoke and at others."""

PACK_SECONDS, LARGEST_ARRAY = 300, 1000
"""How long a task of several runs takes, since starting one costs some five seconds; and how many
tasks an array has, by Slurm's own limit."""

SLOWER, LARGER = 3, 1.3
"""How many times the time and the memory of before a run may take: nodes and company differ."""

MINUTES = (15, 60, 240, 1440)
"""Time limits that are asked for: the fewer, the fewer arrays. Longer runs are queued again."""

LEAST_GIBIBYTES, UNKNOWN_GIBIBYTES, GPU_GIBIBYTES = 2, 8, 4
"""Libraries reserve more than they fill; those of a GPU come beside what was measured without."""

Jobs = dict[str, Job]
"""By label: what runs are called in the queue."""

Arrays = dict[tuple[int, int, int], list[list[str]]]
"""The labels of each task, by the minutes and GiB that tasks ask for, and a number of the array."""


def packed(jobs: Jobs, gibibytes: dict[str, int], minutes: int, most_seconds: float) -> Arrays:
    """Return the arrays that jobs make.

    Short runs of one memory share a task. minutes: the time limit, 0 where it is open;
    most_seconds: how long a shared task takes.
    """
    packs: list[tuple[float, int, list[str]]] = []
    for label in sorted(jobs, key=gibibytes.__getitem__):
        seconds, need = _seconds(jobs[label]), gibibytes[label]
        if packs and packs[-1][1] == need and packs[-1][0] + seconds <= most_seconds:
            before, _, pack = packs.pop()
            packs.append((before + seconds, need, [*pack, label]))
        else:
            packs.append((seconds, need, [label]))
    found: Arrays = {}
    for number, (seconds, need, pack) in enumerate(packs):
        limit = next((each for each in MINUTES if 60 * each > SLOWER * seconds), MINUTES[-1])
        found.setdefault((minutes or limit, need, number // LARGEST_ARRAY), []).append(pack)
    return found


def _seconds(job: Job) -> float:
    unknown = SMOKE_SECONDS if job.settings.scale == "smoke" else UNKNOWN_SECONDS
    return taken(job.run, "seconds") or unknown


def memory(jobs: Jobs, on_gpu: bool) -> dict[str, int]:
    """Return the GiB that jobs ask for, powers of two, by label.

    Where no peak is known, the largest of those jobs of its study is measured here.
    """
    peaks = {label: taken(job.run, "peak_memory_bytes") for label, job in jobs.items()}
    unknown = sorted((each for each in jobs if not peaks[each]), key=lambda each: _size(jobs[each]))
    largest = {jobs[label].config.study: jobs[label] for label in unknown}
    measured = {study: first_peak(job) for study, job in largest.items()}
    peaks |= {label: measured[jobs[label].config.study] for label in unknown}
    return {label: _gibibytes(peak, on_gpu) for label, peak in peaks.items()}


def _gibibytes(peak: float | None, on_gpu: bool) -> int:
    need = LARGER * peak / 2**30 + GPU_GIBIBYTES * on_gpu if peak else UNKNOWN_GIBIBYTES
    return 2 ** math.ceil(math.log2(max(need, LEAST_GIBIBYTES)))


def _size(job: Job) -> int:
    """Return a number that is large where a run is: the product of its whole numbers."""
    values = [value for name, value in vars(job.config).items() if name != "seed"]
    return math.prod(value for value in values if isinstance(value, int) and value > 0)


def taken(run: Run, what: str) -> float | None:
    """Return what the provenance of a run has of it, as it took before; None: it is unknown.

    what: `seconds`, `peak_memory_bytes`.
    """
    before = run.provenance()
    own = before.get(what) if before.get("status") == "complete" else None
    value = of_reference().get(str(run), {}).get(what) if own is None else own
    return value if isinstance(value, int | float) else None


def first_peak(job: Job) -> int:
    """Return the bytes that a run takes here until a second after its first checkpoint.

    They are those of a process of its own, libraries included. 0: it cannot be computed here.
    """
    log.info("measuring the memory of a first step of %s on this machine", job.run)
    peak, end = 0, time.monotonic() + MEASURED_SECONDS
    with TemporaryDirectory() as folder:
        here: Any = {"outputs": folder, "device": "cpu", "checkpoint_seconds": 0, "tracker": None}
        told = replace(job, settings=replace(job.settings, **here))
        child = multiprocessing.get_context("spawn").Process(target=complete, args=(told,))
        child.start()
        while child.is_alive() and time.monotonic() < end:
            with suppress(OSError, IndexError):  # it has just ended
                status = Path(f"/proc/{child.pid}/status").read_text()
                peak = 1024 * int(status.split("VmHWM:")[1].split()[0])
            if any(Path(folder).glob("runs/*/*/checkpoint.safetensors")):
                end = min(end, time.monotonic() + 1)
            time.sleep(0.02)
        failed = child.exitcode
        child.kill()
        child.join()
    return 0 if failed else peak
