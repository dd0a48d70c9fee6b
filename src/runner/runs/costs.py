"""What runs cost: the seconds and the memory that they took before, here or for the reference."""

import json
import math
import os
from functools import cache
from typing import Any

from runner.core.progress import duration
from runner.runs.provenance import DRIVER, REFERENCE
from runner.runs.run import Run


def taken(run: Run, what: str) -> float | None:
    """Return what the provenance of a run has of it, as it took before; None: it is not known.

    what: `seconds`, `peak_memory_bytes`.
    """
    before = run.provenance()
    own = before.get(what) if before.get("status") == "complete" else None
    value = of_reference().get(str(run), {}).get(what) if own is None else own
    return value if isinstance(value, int | float) else None


def expected_seconds(run: Run) -> float:
    """Return how long the run takes: as it took before, here or for the reference; inf: unknown."""
    return taken(run, "seconds") or math.inf


def announcement(runs: list[Run], device: str, abreast: int) -> str:
    """Return what the runs will cost, in words; nothing where the reference does not tell.

    device: the setting; abreast: how many run side by side.
    """
    known = [of_reference().get(str(run), {"device": ""}) for run in runs]
    if not known or any(about.get("device", "cpu") != "cpu" for about in known):
        return ""
    if not (device == "cpu" or device == "auto" and not DRIVER.exists()):
        return ""
    seconds = [about["seconds"] for about in known]
    cores = min(len(runs), abreast, os.cpu_count() or 1)
    time = duration(max(sum(seconds) / cores, *seconds))
    return f"{time}{f' on {cores} cores' * (cores > 1)} (from the reference's times)"


@cache
def of_reference() -> dict[str, dict[str, Any]]:
    """Return the provenance of all runs behind the kept figures, by the name of the run."""
    kept = [json.loads(path.read_text()) for path in REFERENCE.glob("*/*/provenance.json")]
    return {run["run"]: run for about in kept for run in about["runs"]}
