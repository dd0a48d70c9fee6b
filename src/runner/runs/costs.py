"""What runs cost: what they took before, here or for the reference, or take in a first step."""

import json
import logging
import math
import multiprocessing
import os
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from runner.core.progress import duration
from runner.runs.jobs import Job, complete
from runner.runs.provenance import DRIVER, REFERENCE
from runner.runs.run import Run

log = logging.getLogger("runner")

MEASURED_SECONDS = 20
"""How long a first step is waited for."""


def taken(run: Run, what: str) -> float | None:
    """Return what the provenance of a run has of it, as it took before; None: it is unknown.

    what: `seconds`, `peak_memory_bytes`.
    """
    before = run.provenance()
    own = before.get(what) if before.get("status") == "complete" else None
    value = of_reference().get(str(run), {}).get(what) if own is None else own
    return value if isinstance(value, int | float) else None


def expected_seconds(run: Run) -> float:
    """Return how long the run takes: as it took before, here or for the reference; inf: unknown."""
    return taken(run, "seconds") or math.inf


def announcement(jobs: list[Job], abreast: int) -> str:
    """Return what the jobs will cost, in words; nothing where the reference does not tell.

    abreast: how many run side by side.
    """
    known = [of_reference().get(str(job.run), {"device": ""}) for job in jobs]
    if not known or any(about.get("device", "cpu") != "cpu" for about in known):
        return ""
    wish = jobs[0].settings.device
    if not (wish == "cpu" or wish == "auto" and not DRIVER.exists()):
        return ""
    seconds = [about["seconds"] for about in known]
    cores = min(len(jobs), abreast, os.cpu_count() or 1)
    took = duration(max(sum(seconds) / cores, *seconds))
    return f"{took}{f' on {cores} cores' * (cores > 1)} (from the reference's times)"


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


@cache
def of_reference() -> dict[str, dict[str, Any]]:
    """Return the provenance of all runs behind the kept figures, by the name of the run."""
    found: dict[str, dict[str, Any]] = {}
    for path in REFERENCE.glob("*/*/provenance.json"):
        try:
            runs = json.loads(path.read_text())["runs"]
            found |= {run["run"]: run for run in runs if float(run["seconds"]) >= 0}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            log.info("%s cannot be read (%s): its times are not known", path, type(error).__name__)
    return found
