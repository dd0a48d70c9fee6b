"""What runs cost, seconds and memory, and what a cluster is asked for on their behalf."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from runner.cli.composing import Job
from runner.core.progress import duration
from runner.runs.provenance import DRIVER, REFERENCE
from runner.runs.run import Run

PACK_SECONDS = 300
"""Shorter runs share a task until it takes so long: starting one costs some five seconds."""

SMOKE_SECONDS = 10
"""What a run at scale smoke takes at most, where nothing else is known."""

SLOWER = 3
"""How many times longer than for the reference a run may take: nodes and their company differ."""

MINUTES = (15, 60, 240, 1440)
"""Time limits that are asked for: the fewer, the fewer arrays. Longer runs are queued again."""

UNKNOWN_MINUTES = 240

GIBIBYTE = 2**30

LARGER = 1.3
"""How many times more memory than for the reference a run may take."""

GPU_PROGRAM = 3 * GIBIBYTE
"""Bytes that the libraries of a GPU take on its node, beside the peak without one."""

UNKNOWN_GIBIBYTES = 8
"""Where no peak has been measured."""


@dataclass(frozen=True, order=True)
class Needs:
    """What a task asks for: minutes, and memory in GiB."""

    minutes: int
    gibibytes: int


def expected_seconds(run: Run) -> float:
    """How long the run takes: as it took before, here or for the reference; inf: not known."""
    return _measured(run, "seconds") or math.inf


def _measured(run: Run, what: str) -> float | None:
    """What a complete run took before, here or for the reference; None: not known."""
    before = run.provenance()
    if before.get("status") == "complete" and isinstance(before.get(what), int | float):
        return before[what]
    return _of_reference().get(str(run), {}).get(what)


def announcement(jobs: list[Job], abreast: int) -> str:
    """What the jobs will cost, in words; nothing where the reference does not tell.

    abreast: how many run side by side.
    """
    known = [_of_reference().get(str(job.run), {"device": ""}) for job in jobs]
    if not known or any(about.get("device", "cpu") != "cpu" for about in known):
        return ""
    wish = jobs[0].settings.device
    if not (wish == "cpu" or wish == "auto" and not DRIVER.exists()):
        return ""
    seconds = [about["seconds"] for about in known]
    cores = min(len(jobs), abreast, os.cpu_count() or 1)
    time = duration(max(sum(seconds) / cores, *seconds))
    return f"{time}{f' on {cores} cores' * (cores > 1)} (from the reference's times)"


@cache
def _of_reference() -> dict[str, dict[str, Any]]:
    """The provenance of all runs behind the kept figures, by the name of the run."""
    kept = [json.loads(path.read_text()) for path in REFERENCE.glob("*/*/provenance.json")]
    return {run["run"]: run for about in kept for run in about["runs"]}


def packed(
    jobs: list[Job], wishes: Mapping[str, Any], pack_seconds: float = PACK_SECONDS
) -> dict[Needs, list[list[Job]]]:
    """The tasks that jobs make, each a list of jobs in order, by what they ask for.

    Short ones of one memory share a task. wishes: `mem_gb`, `timeout_min` and `gpus_per_node` of
    the launcher; the first two are kept where they are given. pack_seconds: how long a shared task
    takes at most.
    """
    open_tasks: dict[int, list[Job]] = {}
    tasks: list[tuple[int, list[Job]]] = []
    for job in jobs:
        gibibytes = _gibibytes(job, wishes)
        pack = open_tasks.get(gibibytes)
        if pack is None or _seconds([*pack, job]) > pack_seconds:
            pack = open_tasks[gibibytes] = []
            tasks.append((gibibytes, pack))
        pack.append(job)
    found: dict[Needs, list[list[Job]]] = {}
    for gibibytes, pack in tasks:
        minutes = wishes.get("timeout_min") or _minutes(_seconds(pack))
        found.setdefault(Needs(minutes, gibibytes), []).append(pack)
    return found


def _seconds(jobs: list[Job]) -> float:
    """How long the jobs take one after the other; inf: not known."""
    total = 0.0
    for job in jobs:
        seconds = expected_seconds(job.run)
        small = math.isinf(seconds) and job.settings.scale == "smoke"
        total += SMOKE_SECONDS if small else seconds
    return total


def _minutes(seconds: float) -> int:
    """The time limit for work of so many seconds."""
    if math.isinf(seconds):
        return UNKNOWN_MINUTES
    enough = [minutes for minutes in MINUTES if 60 * minutes > SLOWER * seconds]
    return min(enough, default=MINUTES[-1])


def _gibibytes(job: Job, wishes: Mapping[str, Any]) -> int:
    """The memory to ask for: a power of two, unless it is given."""
    if given := wishes.get("mem_gb"):
        return given
    peak = _measured(job.run, "peak_memory_bytes")
    if peak is None:
        return UNKNOWN_GIBIBYTES
    need = LARGER * peak + GPU_PROGRAM * bool(wishes.get("gpus_per_node"))
    return 2 ** max(0, math.ceil(math.log2(need / GIBIBYTE)))
