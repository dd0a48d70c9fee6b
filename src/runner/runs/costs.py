"""Estimates of how long runs will take, from the times of earlier runs."""

import json
import logging
import math
import os
from functools import cache
from typing import Any

from runner.core.progress import duration
from runner.runs.jobs import Job
from runner.runs.provenance import DRIVER, REFERENCE
from runner.runs.run import Run

log = logging.getLogger("runner")


def expected_seconds(run: Run) -> float:
    """Return how many seconds the run took when it was last computed, inf if this is unknown.

    Without a complete run of the user, the time is of the same run behind the reference.
    """
    before = run.provenance()
    if before.get("status") != "complete":
        before = of_reference().get(run.name, {})
    seconds = before.get("seconds")
    return seconds if isinstance(seconds, int | float) and seconds else math.inf


def announcement(jobs: list[Job], abreast: int) -> str:
    """Return a text about how long jobs will take, by the times of the reference's runs.

    An example is `about 3 min on 2 cores (from the reference's times)`. The text is empty if the
    reference has no time on the CPU for one of the jobs, or if a GPU computes them. abreast: how
    many jobs run side by side.
    """
    costs = [of_reference().get(job.run.name, {"device": ""}) for job in jobs]
    device = jobs[0].settings.device if jobs else "none"
    is_on_cpu = device == "cpu" or device == "auto" and not DRIVER.exists()
    if not is_on_cpu or any(run.get("device", "cpu") != "cpu" for run in costs):
        return ""
    seconds = [run["seconds"] for run in costs]
    cores = min(len(jobs), abreast, os.cpu_count() or 1)
    took = duration(max(sum(seconds) / cores, *seconds))
    return f"{took}{f' on {cores} cores' * (cores > 1)} (from the reference's times)"


@cache
def of_reference() -> dict[str, dict[str, Any]]:
    """Return the provenance of all runs behind the figures of the reference, by `Run.name`.

    This name consists of the study and the parameters that differ from their defaults. A damaged
    file of the reference is reported in the log, and skipped.
    """
    by_name: dict[str, dict[str, Any]] = {}
    for path in REFERENCE.glob("*/*/provenance.json"):
        try:
            runs = json.loads(path.read_text())["runs"]
            by_name |= {run["run"]: run for run in runs if float(run["seconds"]) >= 0}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            log.info("%s cannot be read (%s): its times are unknown", path, type(error).__name__)
    return by_name
