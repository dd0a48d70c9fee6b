"""What runs cost: the seconds that they took before, here or for the reference."""

import json
import math
import os
from functools import cache
from typing import Any

from runner.core.progress import duration
from runner.runs.jobs import Job
from runner.runs.provenance import DRIVER, REFERENCE
from runner.runs.run import Run


def expected_seconds(run: Run) -> float:
    """Return how long the run takes: as it took before, here or for the reference; inf: unknown."""
    before = run.provenance()
    if before.get("status") == "complete" and isinstance(before.get("seconds"), float):
        return before["seconds"]
    return of_reference().get(str(run), {"seconds": math.inf})["seconds"]


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
    time = duration(max(sum(seconds) / cores, *seconds))
    return f"{time}{f' on {cores} cores' * (cores > 1)} (from the reference's times)"


@cache
def of_reference() -> dict[str, dict[str, Any]]:
    """Return the provenance of all runs behind the kept figures, by the name of the run."""
    kept = [json.loads(path.read_text()) for path in REFERENCE.glob("*/*/provenance.json")]
    return {run["run"]: run for about in kept for run in about["runs"]}
