"""Estimates of how long runs will take, from the times of earlier runs."""

import json
import logging
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from runner.core.progress import duration
from runner.core.studies import StudyConfig
from runner.runs.files import read
from runner.runs.inventory import find
from runner.runs.jobs import Job
from runner.runs.provenance import DRIVER, REFERENCE
from runner.runs.run import Run, read_provenance, shown_parameters

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
    """Return a text about how long jobs will take, by the times of earlier runs.

    An example is `about 3 min on 2 cores (from the reference's times)`; times below A_FEW_SECONDS
    are not more precise than that. For a run that the reference does not have, the time of the most
    similar one is taken or, if there is none, of the most similar complete run of the user. The
    text is empty if there is none for one of the jobs, or if a GPU computes them. abreast: how many
    jobs run side by side.
    """
    device = jobs[0].settings.device if jobs else "none"
    if device != "cpu" and (device != "auto" or DRIVER.exists()):
        return ""
    known = of_reference()
    costs = [known.get(job.run.name) or similar(job.config) for job in jobs]
    left = [i for i, cost in enumerate(costs) if not cost.get("device", "cpu")]
    of_user = _of_user([jobs[i] for i in left])
    for i in left:
        costs[i] = similar(jobs[i].config, of_user)
    if any(run.get("device", "cpu") != "cpu" for run in costs):
        return ""
    seconds = [run["seconds"] for run in costs]
    cores = min(len(jobs), abreast, os.cpu_count() or 1)
    longest = max(sum(seconds) / cores, *seconds)
    took = "a few seconds" if longest < A_FEW_SECONDS else duration(longest)
    all_known = all(job.run.name in known for job in jobs)
    of_similar = f"times of similar runs{'' if left else ' in the reference'}"
    source = "the reference's times" if all_known else of_similar
    return f"{took}{f' on {cores} cores' if cores > 1 else ''} (from {source})"


def choice_note(jobs: list[Job]) -> str:
    """Return how a command's runs can skip the choice of learning rates; empty if none chooses."""
    for config in (job.config for job in jobs):
        if grids := config.grids():
            words = [f"{name}=[{grid[(len(grid) - 1) // 2]}]" for name, grid in grids.items()]
            off = " or train=false" if hasattr(config, "train") else ""
            chosen = "learning rates" if len(grids) == 1 else ", ".join(grids).replace("_", " ")
            return f"part of it chooses {chosen}: {' '.join(words)}{off} skips this"
    return ""


FACTORS = ("epochs", "steps", "layers", "depth")
"""Parameters to which the time of a run is roughly proportional, as it is to `_networks`."""

COUNTS = {*FACTORS, "replicates", "chains", "selection_replicates", "learning_rates", "seed"}

A_FEW_SECONDS = 10
"""Times below this one depend mostly on loading libraries and on compiling code."""

MOST_DIFFERENT = 4
"""The largest difference of similar runs.

A number counts 1 for each factor of 2, a name counts 2, and a switch counts 5.
"""


def similar(
    config: StudyConfig, known: Mapping[str, dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the estimated cost of a run, from the stored run with the most equal parameters.

    The seconds of the stored run are multiplied by the ratios of FACTORS and of the numbers of
    networks. If there is no similar run, the result has the device `""`. known: the costs of stored
    runs by `Run.name`; None: of the runs behind the reference.
    """
    mine, found = shown_parameters(config, all=True), list[tuple[float, float, float]]()
    defaults = shown_parameters(type(config)(), all=True)
    for name, cost in (of_reference() if known is None else known).items():
        study, _, words = name.partition(" ")
        if study != config.study or cost.get("device", "cpu") != "cpu":
            continue
        pairs = (word.partition("=") for word in words.split(",") if "=" in word)
        theirs = {**defaults, **{key: value for key, _, value in pairs}}
        different = sum(
            _difference(mine[key], theirs[key])
            for key in mine
            if key not in COUNTS and mine[key] != theirs[key]
        )
        with suppress(ValueError, ZeroDivisionError):  # a null, or a list
            ratio = _networks(mine) / _networks(theirs)
            for key in FACTORS:
                if mine.get(key) != theirs.get(key):
                    ratio *= float(mine[key]) / float(theirs[key])
            seconds = min(cost["seconds"], cost.get("cpu_seconds") or math.inf) * ratio
            found.append((different, abs(math.log(ratio)), seconds))
    different, _, seconds = min(found, default=(math.inf, 0.0, 0.0))
    return {"device": "cpu", "seconds": seconds} if different <= MOST_DIFFERENT else {"device": ""}


def _difference(mine: str, theirs: str) -> float:
    """Return how much two values of a parameter differ, in the units of MOST_DIFFERENT.

    A list of numbers, `4+6+8`, has the size of its sum.
    """
    if mine in ("True", "False"):
        return 5
    try:
        sizes = [sum(map(float, value.split("+"))) for value in (mine, theirs)]
        return max(1.0, abs(math.log2(sizes[0] / sizes[1])))
    except (ValueError, ZeroDivisionError):  # a name, or a zero
        return 2


def _networks(parameters: dict[str, str]) -> float:
    """Return how many networks a run trains for each kind, with those that choose learning rates.

    parameters: all parameters as texts.
    """
    number = float(parameters.get("replicates") or parameters.get("chains") or 1)
    grid = parameters.get("learning_rates", "").count("+") + 1
    tries = float(parameters.get("selection_replicates", 0)) * grid if grid > 1 else 0
    return number + tries


def _of_user(jobs: list[Job]) -> dict[str, dict[str, Any]]:
    """Return seconds and device of the user's complete runs of the jobs' studies, by `Run.name`."""
    costs: dict[str, dict[str, Any]] = {}
    for outputs, study in {(job.settings.folder(), job.config.study) for job in jobs}:
        for info in find(outputs, study) if outputs.is_dir() else ():
            if info.status == "complete" and info.config is not None and info.seconds > 0:
                device = read_provenance(info.folder).get("device", "cpu")
                costs[info.run.name] = {"seconds": info.seconds, "device": device}
    return costs


@cache
def of_reference() -> dict[str, dict[str, Any]]:
    """Return the provenance of all runs behind the figures of the reference, by `Run.name`.

    This name consists of the study and the parameters that differ from their defaults. A damaged
    file of the reference is reported in the log, and skipped.
    """
    by_name: dict[str, dict[str, Any]] = {}
    for path in REFERENCE.glob("*/*/provenance.json"):
        try:
            runs = json.loads(read(path))["runs"]
            by_name |= {run["run"]: run for run in runs if float(run["seconds"]) >= 0}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            log.info("%s cannot be read (%s): its times are unknown", path, type(error).__name__)
    return by_name
