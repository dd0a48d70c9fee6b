"""Launching a sweep: each incomplete run once, one failure never stopping the others.

Works with every launcher of Hydra; those with a queue are followed through it. Runs that another
process computes are left for the end, so that several processes share the work of one sweep.
"""

import copy
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf

from runner.cli.composing import Job
from runner.cli.costs import announcement, expected_seconds
from runner.cli.watching import Watch
from runner.cli.working import Attempt
from runner.core.errors import Busy, InputError, RunFailed
from runner.core.folders import require_writable
from runner.core.rooms import module_of
from runner.results.variants import Variant
from runner.runs.run import kept_notes

if TYPE_CHECKING:
    from runner.cli.following import Following

log = logging.getLogger("runner")

KILLED = "its process was killed (by the system, when memory ran out)"


class ComposedJobs:
    """What launchers ask for the configuration of a job: here it is composed already.

    They know a job by a list of texts, as a rule its overrides; here one text, all its values.
    """

    @staticmethod
    def text(job: Job, **changes: Any) -> str:
        """The job as a launcher carries it, with other values for some keys."""
        return json.dumps(job.values | changes)

    def load_sweep_config(
        self, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        """The configuration of one job, as Hydra's own loader would compose it."""
        (text,) = sweep_overrides
        composed = OmegaConf.create(json.loads(text))
        composed.hydra = copy.deepcopy(master_config.hydra)
        return composed


def launch(launcher: Launcher, jobs: list[Job]) -> None:
    """Launch the jobs whose runs are not complete.

    Raises InputError before anything runs when there is no such device here, a study is not whole,
    a tracker is not installed, or the folder takes no files;
    RunFailed at the end when runs failed, with the path of each one's traceback.
    """
    settings = jobs[0].settings
    attempts = _wanted(launcher, jobs)
    failures: list[str] = []
    if attempts and has_queue(launcher):
        following = _queued(launcher, attempts)
        failures = following.follow()
    elif attempts:
        with _watched(launcher, attempts):
            busy = _launch_all(launcher, attempts, False, settings.fail_fast, failures)
            if not (failures and settings.fail_fast):
                _launch_all(launcher, busy, True, settings.fail_fast, failures)
    if failures:
        raise RunFailed(f"{len(failures)} of {len(jobs)} runs failed:\n" + "\n".join(failures))


def submit(launcher: Launcher, jobs: list[Job], variants: list[Variant]) -> bool:
    """Put the jobs whose runs are not complete into Slurm's queue, and behind them the drawing of
    their figures; whether there were any.

    Raises InputError as `launch` does, and for a launcher whose queue ends with the command.
    """
    if type(launcher).__name__ != "SlurmLauncher":
        raise InputError("submit_only=true needs hydra/launcher=slurm-cpu or slurm-gpu")
    attempts = _wanted(launcher, jobs)
    if not attempts:
        return False
    following = _queued(launcher, attempts)
    if variants:
        following.draw_afterwards(variants)
    return True


def _wanted(launcher: Launcher, jobs: list[Job]) -> list[Attempt]:
    """Attempts at the jobs whose runs are not complete; raises InputError as `launch` does."""
    settings = jobs[0].settings
    require_writable(settings.folder())
    wanted = [job for job in jobs if job.run.is_wanted(settings)]
    here = not has_queue(launcher)
    cost = announcement(wanted, side_by_side(launcher)) if here else ""
    runs = "1 run" if len(jobs) == 1 else f"{len(jobs)} runs"
    begun = f"{runs}, {len(jobs) - len(wanted)} of them complete"
    log.info("%s", "; ".join(filter(None, (begun, cost))))
    for note in kept_notes((job.run for job in jobs if job not in wanted), settings):
        log.info(note)
    require_sound(wanted, launcher)
    if wanted:
        require_writable(settings.folder(), wanted[0].run.folder)
    if type(launcher).__name__ != "BasicLauncher":  # which runs one after the other
        wanted.sort(key=lambda job: expected_seconds(job.run), reverse=True)
    return [Attempt(job) for job in wanted]


@contextmanager
def _watched(launcher: Launcher, attempts: list[Attempt]) -> Iterator[None]:
    """While these attempts are launched, one line tells how far all are.

    A single run has a bar of its own, and needs no second process.
    """
    if len(attempts) > 1:
        seconds = [expected_seconds(attempt.job.run) for attempt in attempts]
        with Watch(attempts, seconds, side_by_side(launcher)):
            yield
        return
    if type(launcher).__name__ == "JoblibLauncher" and side_by_side(launcher) > 1:
        launcher.joblib["n_jobs"] = launcher.config.hydra.launcher.n_jobs = 1
    yield


def _queued(launcher: Launcher, attempts: list[Attempt]) -> "Following":
    """The attempts, in the queue of the launcher."""
    from runner.cli.following import Following  # late: submitit is not needed everywhere
    from runner.cli.queueing import queue_of
    from runner.cli.tasks import fetch_data

    settings = attempts[0].job.settings
    fetch_data([attempt.job for attempt in attempts])
    following = Following(queue_of(launcher, settings.folder()), attempts, settings)
    following.submit()
    return following


def has_queue(launcher: Launcher) -> bool:
    """Whether the jobs go into a queue, or run as processes of their own, by submitit."""
    return type(launcher).__name__ in ("SlurmLauncher", "LocalLauncher")


def require_sound(jobs: list[Job], launcher: Launcher) -> None:
    """Raise InputError unless all studies are whole, their tracker is installed and, if they run
    here, there is such a device.
    """
    if not jobs:
        return
    from runner.runs import machine, trackers  # late, with torch: not needed where all is complete

    for study in {job.config.study for job in jobs}:
        module_of(study)
    trackers.require(jobs[0].settings.tracker)
    if not has_queue(launcher):
        machine.device(jobs[0].settings.device)


def _launch_all(
    launcher: Launcher, attempts: list[Attempt], wait: bool, fail_fast: bool, failures: list[str]
) -> list[Attempt]:
    """Launch the attempts, add what failed to `failures`, and return those that are another's."""
    step = side_by_side(launcher) if fail_fast else max(1, len(attempts))
    busy: list[Attempt] = []
    for start in range(0, len(attempts), step):
        for attempt, error in _launch_batch(launcher, attempts[start : start + step], wait):
            if isinstance(error, Busy):
                busy.append(attempt)
            elif isinstance(error, RunFailed):
                failures.append(str(error))
            elif error is not None:
                failures.append(f"{attempt.job.run} failed: {error}")
            elif not attempt.is_done():
                failures.append(f"{attempt.job.run} failed: it ended without a result")
        if failures and fail_fast:
            break
    return busy


def side_by_side(launcher: Launcher) -> int:
    """How many jobs the launcher runs at once."""
    number = launcher.config.hydra.launcher.get("n_jobs", 1)
    return number if number > 0 else os.cpu_count() or 1


def _launch_batch(
    launcher: Launcher, batch: list[Attempt], wait: bool
) -> list[tuple[Attempt, Exception | None]]:
    """Each job of the batch with the exception that ended it, None where it ended well."""
    texts = [[ComposedJobs.text(attempt.job, wait=wait)] for attempt in batch]
    try:
        returns = launcher.launch(texts, initial_job_idx=0)
    except Exception as error:  # jobs return what they raise: a process died, or none began
        if not any(each.is_done() or each.job.run.status() == "running" for each in batch):
            name = launcher.config.hydra.runtime.choices["hydra/launcher"]
            raise InputError(f"hydra/launcher={name} cannot start jobs: {error}") from error
        if len(batch) == 1:
            return [(batch[0], RunFailed(f"{batch[0].job.run} failed: {KILLED}"))]
        return _launch_rest(launcher, batch, wait)
    return [(each, returned.return_value) for each, returned in zip(batch, returns, strict=True)]


def _launch_rest(
    launcher: Launcher, batch: list[Attempt], wait: bool
) -> list[tuple[Attempt, Exception | None]]:
    """Go on after the death of a worker, which took all the others with it.

    Which run killed it is not known: those that were running go on one by one, the others together.
    """
    done = [each for each in batch if each.is_done()]
    running = [each for each in batch if each not in done and each.job.run.status() == "running"]
    waiting = [each for each in batch if each not in done and each not in running]
    log.info("a process was killed: %d runs go on one by one", len(running))
    pieces = [[each] for each in running] + ([waiting] if waiting else [])
    ended = [pair for piece in pieces for pair in _launch_batch(launcher, piece, wait)]
    return [(each, None) for each in done] + ended
