"""Launching a sweep: each incomplete run once, one failure never stopping the others.

Works with every launcher of Hydra. Runs that another process computes are left for the end, so that
several processes share the work of one sweep.
"""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from hydra.core.utils import JobStatus
from hydra.plugins.launcher import Launcher

from runner import capacity
from runner.errors import Busy, InputError, RunFailed
from runner.runs import Run
from runner.settings import Settings, torch_device
from runner.studies import StudyConfig

log = logging.getLogger("runner")

KILLED = "its process was killed (by the system, when memory ran out)"


@dataclass(frozen=True)
class Job:
    """One run of a sweep and the overrides that make it."""

    overrides: list[str]
    run: Run


def launch(
    launcher: Launcher, jobs: list[list[str]], composed: list[tuple[Settings, StudyConfig]]
) -> None:
    """Launch the jobs whose runs are not complete.

    jobs: the overrides of each job; composed: its settings and parameters. Raises InputError before
    anything runs when there is no such device here, a run will not fit into its memory, or the
    folder cannot be written; RunFailed at the end when runs failed, with the path of each one's
    traceback.
    """
    settings = composed[0][0]
    sweep = {
        run.folder: Job(job, run)
        for job, run in zip(jobs, (Run(c, s.folder()) for s, c in composed), strict=True)
    }
    _require_folder(settings.folder())
    wanted = [job for job in sweep.values() if settings.force or not job.run.is_complete()]
    log.info("%d runs, %d of them complete", len(sweep), len(sweep) - len(wanted))
    if _is_local(launcher):
        for job in wanted:
            capacity.require(job.run.config, torch_device(settings.device))
    failures: list[str] = []
    busy = _launch_all(launcher, wanted, "wait=false", settings.fail_fast, failures)
    if not (failures and settings.fail_fast):
        _launch_all(launcher, busy, "wait=true", settings.fail_fast, failures)
    if failures:
        raise RunFailed(f"{len(failures)} of {len(sweep)} runs failed:\n" + "\n".join(failures))


def _require_folder(folder: Path) -> None:
    """Raise InputError unless files can be written under the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"outputs={folder} cannot be written ({error.strerror})") from error


def _launch_all(
    launcher: Launcher, jobs: list[Job], extra: str, fail_fast: bool, failures: list[str]
) -> list[Job]:
    """Launch the jobs, add what failed to `failures`, and return those that are another's."""
    step = _side_by_side(launcher) if fail_fast else max(1, len(jobs))
    busy: list[Job] = []
    for start in range(0, len(jobs), step):
        for job, error in _launch_batch(launcher, jobs[start : start + step], extra):
            if isinstance(error, Busy):
                busy.append(job)
            elif error is not None:
                failures.append(
                    str(error) if isinstance(error, RunFailed) else f"{job.run} failed: {error}"
                )
        if failures and fail_fast:
            break
    return busy


def _is_local(launcher: Launcher) -> bool:
    """Whether the jobs run on this machine, whose devices and memory are then what they have."""
    return type(launcher).__name__ in ("BasicLauncher", "JoblibLauncher")


def _side_by_side(launcher: Launcher) -> int:
    """How many jobs the launcher runs at once."""
    number = launcher.config.hydra.launcher.get("n_jobs", 1)
    return number if number > 0 else os.cpu_count() or 1


def _launch_batch(
    launcher: Launcher, batch: list[Job], extra: str
) -> list[tuple[Job, Exception | None]]:
    """Each job of the batch with the exception that ended it, None where it ended well."""
    try:
        returns = launcher.launch([[*job.overrides, extra] for job in batch], initial_job_idx=0)
    except (
        Exception
    ) as error:  # what a job raises is in `returns`: here a process died, or none began
        if not any(job.run.is_complete() or job.run.status() == "running" for job in batch):
            name = launcher.config.hydra.runtime.choices["hydra/launcher"]
            raise InputError(f"hydra/launcher={name} cannot start jobs: {error}") from error
        if len(batch) == 1:
            return [(batch[0], RunFailed(f"{batch[0].run} failed: {KILLED}"))]
        return _launch_rest(launcher, batch, extra)
    return [
        (job, None if returned.status is JobStatus.COMPLETED else returned._return_value)
        for job, returned in zip(batch, returns, strict=True)
    ]


def _launch_rest(
    launcher: Launcher, batch: list[Job], extra: str
) -> list[tuple[Job, Exception | None]]:
    """Go on after the death of a worker, which took all the others with it.

    Which run killed it is not known: those that were running go on one by one, the others together.
    """
    done = [job for job in batch if job.run.is_complete()]
    running = [job for job in batch if job not in done and job.run.status() == "running"]
    waiting = [job for job in batch if job not in done and job not in running]
    log.info("a process was killed: %d runs go on one by one", len(running))
    pieces = [[job] for job in running] + ([waiting] if waiting else [])
    ended = [pair for piece in pieces for pair in _launch_batch(launcher, piece, extra)]
    return [(job, None) for job in done] + ended
