"""Launch jobs by any of Hydra's launchers. Each incomplete run is computed once.

A failed run does not stop the others. Runs that another process computes come last, so that several
processes share the work of one sweep.
"""

import _thread
import copy
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from typing import Any, cast

from hydra._internal.callbacks import Callbacks
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext
from omegaconf import DictConfig

from runner.compose.orders import Order
from runner.core import progress
from runner.core.catalogue import module_of
from runner.core.errors import Busy, InputError, RunFailed
from runner.core.folders import require_writable
from runner.results.labels import names_of
from runner.runs.costs import announcement, choice_note, expected_seconds
from runner.runs.jobs import Attempt, Job, complete
from runner.runs.run import Run, kept_notes

log = logging.getLogger("runner")

KILLED = "its process was killed (by the system, when memory ran out)"

DEAD_JOB = re.compile(
    r"""Job\ (?P<job>\S+)\ .*            # Job 123_0 (task: 0) with
    path\ (?P<path>.*)_result\.pkl\n   # path /logs/123_0_0_result.pkl
    .*state:\ (?P<state>.*)\)          # has not produced any output (state: CANCELLED)""",
    re.VERBOSE,
)
"""Pattern of submitit's message about a job that was killed or cancelled, or ended with its
node."""

Outcome = tuple[Attempt, Exception | None]
"""An attempt, and the error with which it ended; None without an error."""


def launch(order: Order) -> list[str]:
    """Compute the runs of an order that are not complete; return a line for each failure.

    The caller must be in a block `with hydra_ready()`. Before anything is computed, InputError is
    raised if

    - a study is incomplete, or a tracker is not installed;
    - a stale run is refused;
    - the folder is not writable, or no job can start.

    If the order has only one job, its InputError or OSError is raised. Raises RunFailed if a job on
    a cluster ends without a result.
    """
    attempts = wanted(order)
    if not attempts:
        return []
    composed, settings = order.composed, order.settings
    waits = settings.wait  # each launch changes the settings of its jobs
    if len(attempts) == 1 and "n_jobs" in composed.hydra.launcher:
        composed.hydra.launcher.n_jobs = 1  # needs no separate process
    if on_slurm(composed):
        fetch_datasets(attempts)
        log.info("`squeue --me` lists the jobs; logs: %s/submitit", settings.folder())
    with ExitStack() as stack:
        if len(attempts) > 1:
            from runner.compose.sweep_progress import SweepProgress  # late: a single run has none

            stack.enter_context(SweepProgress(attempts))
            stack.enter_context(progress.single_runs_silent())
        try:
            outcomes = _launch(composed, attempts, wait=False)
        except KeyboardInterrupt:
            for attempt in attempts:
                attempt.mark_interrupted()
            raise
        busy = [attempt for attempt, error in outcomes if isinstance(error, Busy)]
        if busy and waits and not (settings.fail_fast and _any_failed(outcomes)):
            outcomes = [outcome for outcome in outcomes if outcome[0] not in busy]
            outcomes += _launch(composed, busy, wait=True)
        for attempt, error in outcomes:
            attempt.raised = error  # the line at the end of the progress counts it
    failed = [(attempt.job.run, error) for attempt, error in outcomes if error is not None]
    if len(order.jobs) == 1 and failed and isinstance(failed[0][1], InputError | OSError):
        raise failed[0][1]
    lines = [
        str(error) if _names(run, error) else f"{run} failed: {error}" for run, error in failed
    ]
    if lines and len(order.jobs) > 1:
        lines.insert(0, f"{len(lines)} of {len(order.jobs)} runs failed:")
    return lines


def _names(run: Run, error: Exception) -> bool:
    """Return whether the message of an error begins with the name of its run."""
    return isinstance(error, RunFailed) or str(error).startswith(str(run))


def plan(order: Order) -> tuple[list[Job], str]:
    """Return the jobs of an order that must be computed, and a text about their number and cost."""
    jobs = [job for job in order.jobs if job.run.is_wanted(job.settings)]
    complete = len(order.jobs) - len(jobs)
    count = f"{len(order.jobs)} runs" + (f", {complete} of them complete" if complete else "")
    choice = choice_note(jobs) if not order.figures else ""
    texts = (count if len(order.jobs) > 1 else "", announced(order, jobs), choice)
    return jobs, "; ".join(filter(None, texts))


def announced(order: Order, jobs: list[Job]) -> str:
    """Return in words how long these jobs of an order will take; empty if it is unknown."""
    composed = order.composed
    return "" if on_slurm(composed) else announcement(jobs, side_by_side(composed))


def wanted(order: Order) -> list[Attempt]:
    """Return an `Attempt` for each job whose run must be computed.

    The number of runs and the expected time are logged, and the rules of the order's figures are
    registered. If several jobs run side by side, the longest come first. Raises InputError as
    `launch` does.
    """
    settings, abreast = order.settings, side_by_side(order.composed)
    require_writable(settings.folder())
    jobs, note = plan(order)
    if note:
        log.info("%s", note)
    for run in [job.run for job in order.jobs if job not in jobs]:
        if run.mend_config():
            log.info("%s: its config.yaml was damaged, and is written again", run)
    for note in kept_notes((job.run for job in order.jobs if job not in jobs), settings):
        log.info(note)
    if not jobs:
        return []
    for figure in order.figures:
        figure.register_rules()
    for study in {job.config.study for job in jobs}:
        module_of(study)
        names_of(study)
    if settings.tracker:
        from runner.runs import trackers  # late: most runs have none

        trackers.require(settings.tracker)
    require_images(jobs)
    require_writable(settings.folder(), jobs[0].run.folder.parent)
    if abreast > 1:
        jobs.sort(key=lambda job: expected_seconds(job.run), reverse=True)
    return [Attempt(job) for job in jobs]


def require_images(jobs: list[Job]) -> None:
    """Read the users' files of images, each once; raise InputError if one cannot be used."""
    files = {}
    for config, settings in ((job.config, job.settings) for job in jobs):
        if name := config.own_images():
            files[name, settings.data_folder] = getattr(config, "checksums", None)
    for (name, folder), checksums in files.items():
        from runner.data import own_images  # late: it imports torch

        own_images.load(name, folder, checksums)


def fetch_datasets(attempts: list[Attempt]) -> None:
    """Fetch the datasets of all attempts to this machine.

    The nodes of a cluster may have no network. Raises InputError if a dataset cannot be fetched.
    """
    from runner.data.datasets import FROM_FILES  # late: it imports torch

    data = {getattr(attempt.job.config, "data", ""): attempt.job.settings for attempt in attempts}
    for name in data.keys() & FROM_FILES.keys():
        FROM_FILES[name].files(data[name].source, data[name].data_folder)


class Unchanged:
    """Gives a launcher the sweep's own configuration for each job, which has its parameters.

    Hydra would compose a configuration of each job anew, which takes 0.1 s or more.
    """

    def load_sweep_config(
        self, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        """Return a copy of the sweep's configuration."""
        return copy.deepcopy(master_config)


def launcher_of(composed: DictConfig, task: Callable[[DictConfig], Any]) -> Launcher:
    """Return the Hydra launcher that a configuration chooses.

    task: the function that the launcher will call for each job.
    """
    composes = bool(composed.hydra.callbacks)  # only callbacks read the configuration of a job
    loader = GlobalHydra.instance().config_loader() if composes else cast(ConfigLoader, Unchanged())
    context = HydraContext(loader, Callbacks(composed))
    return Plugins.instance().instantiate_launcher(
        hydra_context=context, task_function=task, config=composed
    )


def on_slurm(composed: DictConfig) -> bool:
    """Return whether a configuration chooses Hydra's launcher for Slurm clusters."""
    return "SlurmLauncher" in composed.hydra.launcher._target_


def side_by_side(composed: DictConfig) -> int:
    """Return how many jobs the configuration's launcher runs at the same time."""
    launcher = composed.hydra.launcher
    number = launcher.get("n_jobs", launcher.get("array_parallelism", 1))
    return number if number > 0 else os.cpu_count() or 1


def _any_failed(outcomes: list[Outcome]) -> bool:
    """Return whether a run has failed. A run that another process computes does not count."""
    return any(error for _, error in outcomes if not isinstance(error, Busy))


def _launch(composed: DictConfig, attempts: list[Attempt], wait: bool) -> list[Outcome]:
    """Launch attempts. With the setting `fail_fast`, stop after a failure.

    In this case only as many are launched at once as run side by side. wait: whether a job waits
    for a run that another process computes.
    """
    fail_fast = attempts[0].job.settings.fail_fast
    step = side_by_side(composed) if fail_fast else len(attempts)
    outcomes: list[Outcome] = []
    for start in range(0, len(attempts), step):
        outcomes += _launch_together(composed, attempts[start : start + step], wait)
        if fail_fast and _any_failed(outcomes):
            break
    return outcomes


def _launch_together(composed: DictConfig, attempts: list[Attempt], wait: bool) -> list[Outcome]:
    """Launch attempts at once. If a dead worker has ended them all, launch the others again."""
    for attempt in attempts:
        attempt.job.settings.wait = wait
    n_jobs = 1 if on_slurm(composed) else side_by_side(composed)
    try:
        jobs = [item.job for item in attempts]
        launcher = launcher_of(composed, partial(work, jobs, n_jobs, command=os.getpid()))
        overrides = [list(attempt.job.overrides) for attempt in attempts]
        returned = launcher.launch(overrides, initial_job_idx=0)
    except Exception as error:  # not from a job: a process died, or no job could start
        _require_dead_worker(error, composed, attempts)
        return _launch_rest(composed, attempts, wait)
    return [
        (attempt, job.return_value or (None if attempt.is_done() else _no_result(attempt)))
        for attempt, job in zip(attempts, returned, strict=True)
    ]


def _require_dead_worker(error: Exception, composed: DictConfig, attempts: list[Attempt]) -> None:
    """Raise an error unless a launcher failed because a worker process on this machine died.

    error: the launcher's error. Raises RunFailed if a job on a cluster has ended without a result,
    and InputError if no job could start.
    """
    if dead := DEAD_JOB.match(str(error)):
        raise RunFailed(
            f"job {dead['job']} ended without a result (state: {dead['state']}; log:"
            f" {dead['path']}_log.out). Other jobs continue. Give the same command again to"
            " compute the missing runs"
        ) from error
    if not any(attempt.is_done() or attempt.has_begun() for attempt in attempts):
        name = composed.hydra.runtime.choices["hydra/launcher"]
        why = " ".join(str(error).split())
        raise InputError(f"hydra/launcher={name} cannot start jobs: {why}") from error


def _launch_rest(composed: DictConfig, attempts: list[Attempt], wait: bool) -> list[Outcome]:
    """Launch the attempts again that a dead worker has ended.

    It is unknown which run killed the worker. Runs that had begun are therefore launched one by
    one.
    """
    left = [attempt for attempt in attempts if not attempt.is_done()]
    outcomes: list[Outcome] = [(item, None) for item in attempts if item not in left]
    if len(left) == 1:
        return [*outcomes, (left[0], RunFailed(f"{left[0].job.run} failed: {KILLED}"))]
    begun = [attempt for attempt in left if attempt.has_begun()]
    log.info("a process was killed: %d runs continue one at a time", len(begun))
    for attempt in begun:
        outcomes += _launch_together(composed, [attempt], wait)
    waiting = [attempt for attempt in left if attempt not in begun]
    return outcomes + (_launch_together(composed, waiting, wait) if waiting else [])


def _no_result(attempt: Attempt) -> RunFailed:
    return RunFailed(f"{attempt.job.run} failed: it ended without a result")


SECONDS_TO_END = 5.0
"""Seconds that a worker without its command has to record that its run was interrupted."""


@cache
def end_with(command: int) -> None:
    """Let this process end within seconds after the command that started it was killed.

    Without this, workers would go on with the runs that they have, and keep their memory. command:
    the number of the command's process. If it is not the parent of this process, nothing happens.
    """

    def watch() -> None:
        while os.getppid() == command:
            time.sleep(1)
        _thread.interrupt_main()
        time.sleep(SECONDS_TO_END)
        os._exit(1)

    if os.getppid() == command:
        threading.Thread(target=watch, daemon=True).start()


def work(jobs: list[Job], n_jobs: int, composed: DictConfig, command: int = 0) -> Exception | None:
    """Compute the run of one of these jobs; return the error that it raised, or None.

    A launcher calls this function once for each job, in any process. Hydra's state has the index of
    the job. The error is returned and not raised, so that other jobs continue. n_jobs: how many
    runs this machine computes at once. composed: the configuration that the launcher composes; it
    is ignored, since the job has its values. command: the number of the command's process.
    """
    if n_jobs > 1:
        end_with(command)
    turn = HydraConfig.get().job.num
    is_submitted = "SUBMITIT_EXECUTOR" in os.environ
    requeue: Any = signal.getsignal(signal.SIGUSR2) if is_submitted else None
    try:
        with ExitStack() as stack:
            if n_jobs > 1 or is_submitted:  # in a separate process
                progress.log_to_terminal()
            if n_jobs > 1:
                stack.enter_context(progress.single_runs_silent())
            if callable(requeue):
                signal.signal(signal.SIGUSR2, signal.default_int_handler)
            complete(jobs[turn], turn, n_jobs)
    except KeyboardInterrupt:
        if callable(requeue):  # Slurm's warning before the time limit: submitit queues it again
            requeue(signal.SIGUSR2, None)
        raise
    except Exception as error:
        return error
    return None
