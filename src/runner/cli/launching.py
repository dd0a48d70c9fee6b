"""Launching jobs by whichever launcher of Hydra's: each incomplete run once, whatever fails.

Runs that another process computes are left for the end, so that several processes share the work
of one sweep.
"""

import logging
import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext
from omegaconf import DictConfig

from runner.cli.orders import Order
from runner.cli.watching import Watch
from runner.cli.working import work
from runner.core.catalogue import module_of
from runner.core.errors import Busy, InputError, RunFailed
from runner.core.folders import require_writable
from runner.results.preregistration import register
from runner.runs.costs import announcement, expected_seconds
from runner.runs.jobs import Attempt
from runner.runs.run import kept_notes

if TYPE_CHECKING:
    import runner.cluster.following

log = logging.getLogger("runner")

KILLED = "its process was killed (by the system, when memory ran out)"

Outcome = tuple[Attempt, Exception | None]
"""An attempt, and what went wrong with it."""


def launch(order: Order) -> list[str]:
    """Compute those runs of an order that are not complete; return what failed, in lines.

    Hydra is ready. Raises InputError before anything runs when a study is not whole, a tracker is
    not installed, a stale run is refused, the folder takes no files, or no job can be started.
    """
    attempts = wanted(order)
    if not attempts:
        return []
    if on_slurm(order.composed):
        return _counted(_queued(order, attempts).follow(), order)
    composed, abreast = order.composed, side_by_side(order.composed)
    if len(attempts) == 1 and "n_jobs" in composed.hydra.launcher:
        composed.hydra.launcher.n_jobs = abreast = 1  # needs no separate process
    waits = order.settings.wait  # what each launch tells its jobs
    seconds = [expected_seconds(attempt.job.run) for attempt in attempts]
    with Watch(attempts, seconds, abreast) if len(attempts) > 1 else nullcontext():
        outcomes = _launch(composed, attempts, wait=False)
        busy = [attempt for attempt, error in outcomes if isinstance(error, Busy)]
        if busy and waits and not (order.settings.fail_fast and _any_failed(outcomes)):
            outcomes = [each for each in outcomes if each[0] not in busy]
            outcomes += _launch(composed, busy, wait=True)
    failed = [(attempt.job.run, error) for attempt, error in outcomes if error is not None]
    if len(order.jobs) == 1 and failed and isinstance(failed[0][1], InputError | OSError):
        raise failed[0][1]
    return _counted([
        str(error) if isinstance(error, RunFailed) else f"{run} failed: {error}"
        for run, error in failed
    ], order)  # fmt: skip


def submit(order: Order) -> int:
    """Put the runs of an order that are not complete into Slurm's queue, and behind them the
    drawing of its figures; return 0.

    Raises InputError as `launch` does, and for a launcher whose queue ends with the command.
    """
    if len(order.jobs) == 1 and not order.figures:
        raise InputError("submit_only=true is for sweeps: add -m hydra/launcher=slurm-cpu")
    if not on_slurm(order.composed):
        raise InputError("submit_only=true needs hydra/launcher=slurm-cpu or slurm-gpu")
    queued = _queued(order, wanted(order))
    if order.figures:
        queued.draw_afterwards(order.figures)
    return 0


def _queued(order: Order, attempts: list[Attempt]) -> "runner.cluster.following.Following":
    """Return the attempts, in the queue of Slurm, and their datasets here: nodes have no network.

    Raises InputError when a dataset cannot be fetched, or the queue refuses them.
    """
    from runner.cluster.following import Following  # late: submitit is not needed everywhere
    from runner.data.datasets import FROM_FILES  # late, with torch

    data = {getattr(attempt.job.config, "data", ""): attempt.job.settings for attempt in attempts}
    for name in data.keys() & FROM_FILES.keys():
        FROM_FILES[name].files(data[name].source, data[name].data_folder)
    return Following(order, attempts)


def launcher_of(composed: DictConfig, task: Callable[[DictConfig], Any]) -> Launcher:
    """Return the launcher that a composition chooses; it calls `task` for each job."""
    context = HydraContext(GlobalHydra.instance().config_loader(), Callbacks(composed))
    return Plugins.instance().instantiate_launcher(
        hydra_context=context, task_function=task, config=composed
    )


def _counted(failures: list[str], order: Order) -> list[str]:
    """Put before several failures, of several runs, how many there are."""
    if not failures or len(order.jobs) == 1:
        return failures
    return [f"{len(failures)} of {len(order.jobs)} runs failed:", *failures]


def _any_failed(outcomes: list[Outcome]) -> bool:
    """Return whether a run has failed; a run that another process computes has not."""
    return any(error for _, error in outcomes if not isinstance(error, Busy))


def wanted(order: Order) -> list[Attempt]:
    """Return attempts at the jobs whose runs are not complete, and say what is there and to come.

    Raises InputError as `launch` does.
    """
    settings = order.settings
    require_writable(settings.folder())
    jobs = [job for job in order.jobs if job.run.is_wanted(job.settings)]
    cost = "" if on_slurm(order.composed) else announcement(jobs, side_by_side(order.composed))
    count = f"{len(order.jobs)} runs, {len(order.jobs) - len(jobs)} of them complete"
    if said := "; ".join(filter(None, (count if len(order.jobs) > 1 else "", cost))):
        log.info("%s", said)
    for note in kept_notes((job.run for job in order.jobs if job not in jobs), settings):
        log.info(note)
    if jobs:
        for figure in order.figures:
            register(figure)
        from runner.runs import trackers  # late, with torch: where all is complete, none runs

        for study in {job.config.study for job in jobs}:
            module_of(study)
        trackers.require(settings.tracker)
        require_writable(settings.folder(), jobs[0].run.folder.parent)
    if side_by_side(order.composed) > 1:
        jobs.sort(key=lambda job: expected_seconds(job.run), reverse=True)
    return [Attempt(job) for job in jobs]


def on_slurm(composed: DictConfig) -> bool:
    """Return whether a launcher is chosen whose queue outlives the command."""
    return "SlurmLauncher" in composed.hydra.launcher._target_


def side_by_side(composed: DictConfig) -> int:
    """Return how many jobs the launcher runs at once."""
    number = composed.hydra.launcher.get("n_jobs", 1)
    return number if number > 0 else os.cpu_count() or 1


def _launch(composed: DictConfig, attempts: list[Attempt], wait: bool) -> list[Outcome]:
    """Launch attempts; with fail_fast as many at once as run side by side, until one has failed."""
    fail_fast = attempts[0].job.settings.fail_fast
    step = side_by_side(composed) if fail_fast else len(attempts)
    outcomes: list[Outcome] = []
    for start in range(0, len(attempts), step):
        outcomes += _launch_together(composed, attempts[start : start + step], wait)
        if fail_fast and _any_failed(outcomes):
            break
    return outcomes


def _launch_together(composed: DictConfig, attempts: list[Attempt], wait: bool) -> list[Outcome]:
    """Launch attempts at once; go on when the death of a worker has ended them all.

    Which run killed it is unknown: the runs that had begun continue one by one.
    """
    for attempt in attempts:
        attempt.job.settings.wait = wait
    task = partial(work, [attempt.job for attempt in attempts], side_by_side(composed))
    try:
        launcher = launcher_of(composed, task)
        overrides = [list(attempt.job.overrides) for attempt in attempts]
        returned = launcher.launch(overrides, initial_job_idx=0)
    except Exception as error:  # jobs hand back what they raise: a process died, or none began
        left = [attempt for attempt in attempts if not attempt.is_done()]
        begun = [attempt for attempt in left if attempt.job.run.status() == "running"]
        if not begun and len(left) == len(attempts):
            name = composed.hydra.runtime.choices["hydra/launcher"]
            raise InputError(f"hydra/launcher={name} cannot start jobs: {error}") from error
        done = [(attempt, None) for attempt in attempts if attempt not in left]
        if len(left) == 1:
            return [*done, (left[0], RunFailed(f"{left[0].job.run} failed: {KILLED}"))]
        log.info("a process was killed: %d runs continue one at a time", len(begun))
        waiting = [attempt for attempt in left if attempt not in begun]
        parts = [[attempt] for attempt in begun] + ([waiting] if waiting else [])
        return done + [each for part in parts for each in _launch_together(composed, part, wait)]
    return [
        (attempt, each.return_value or _without_result(attempt))
        for attempt, each in zip(attempts, returned, strict=True)
    ]


def _without_result(attempt: Attempt) -> RunFailed | None:
    if attempt.is_done():
        return None
    return RunFailed(f"{attempt.job.run} failed: it ended without a result")
