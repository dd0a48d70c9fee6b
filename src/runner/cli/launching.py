"""Launching a sweep: each incomplete run once, one failure never stopping the others.

Works with every launcher of Hydra. Runs that another process computes are left for the end, so that
several processes share the work of one sweep.
"""

import copy
import json
import logging
import os
from pathlib import Path
from typing import Any

from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf

from runner.cli.composing import Job
from runner.core.errors import Busy, InputError, RunFailed
from runner.core.studies import module_of

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
    a run will not fit into its memory, or the folder cannot be written; RunFailed at the end when
    runs failed, with the path of each one's traceback.
    """
    settings = jobs[0].settings
    _require_folder(settings.folder())
    wanted = [job for job in jobs if settings.force or not job.run.is_complete()]
    log.info("%d runs, %d of them complete", len(jobs), len(jobs) - len(wanted))
    if wanted:
        _require_sound(wanted, _is_local(launcher))
    failures: list[str] = []
    busy = _launch_all(launcher, wanted, False, settings.fail_fast, failures)
    if not (failures and settings.fail_fast):
        _launch_all(launcher, busy, True, settings.fail_fast, failures)
    if failures:
        raise RunFailed(f"{len(failures)} of {len(jobs)} runs failed:\n" + "\n".join(failures))


def _require_sound(jobs: list[Job], here: bool) -> None:
    """Raise InputError unless all studies are whole and, if they run here, fit on the device."""
    from runner.runs import memory  # late, with torch: where all is complete none is needed
    from runner.runs.devices import torch_device

    for study in {job.config.study for job in jobs}:
        module_of(study)
    if here:
        device = torch_device(jobs[0].settings.device)
        for job in jobs:
            memory.require(job.config, device)


def _require_folder(folder: Path) -> None:
    """Raise InputError unless files can be written under the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"outputs={folder} cannot be written ({error.strerror})") from error


def _launch_all(
    launcher: Launcher, jobs: list[Job], wait: bool, fail_fast: bool, failures: list[str]
) -> list[Job]:
    """Launch the jobs, add what failed to `failures`, and return those that are another's."""
    step = _side_by_side(launcher) if fail_fast else max(1, len(jobs))
    busy: list[Job] = []
    for start in range(0, len(jobs), step):
        for job, error in _launch_batch(launcher, jobs[start : start + step], wait):
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
    launcher: Launcher, batch: list[Job], wait: bool
) -> list[tuple[Job, Exception | None]]:
    """Each job of the batch with the exception that ended it, None where it ended well."""
    texts = [[ComposedJobs.text(job, wait=wait)] for job in batch]
    try:
        returns = launcher.launch(texts, initial_job_idx=0)
    except Exception as error:  # jobs return what they raise: a process died, or none began
        if not any(job.run.is_complete() or job.run.status() == "running" for job in batch):
            name = launcher.config.hydra.runtime.choices["hydra/launcher"]
            raise InputError(f"hydra/launcher={name} cannot start jobs: {error}") from error
        if len(batch) == 1:
            return [(batch[0], RunFailed(f"{batch[0].run} failed: {KILLED}"))]
        return _launch_rest(launcher, batch, wait)
    return [(job, returned.return_value) for job, returned in zip(batch, returns, strict=True)]


def _launch_rest(
    launcher: Launcher, batch: list[Job], wait: bool
) -> list[tuple[Job, Exception | None]]:
    """Go on after the death of a worker, which took all the others with it.

    Which run killed it is not known: those that were running go on one by one, the others together.
    """
    done = [job for job in batch if job.run.is_complete()]
    running = [job for job in batch if job not in done and job.run.status() == "running"]
    waiting = [job for job in batch if job not in done and job not in running]
    log.info("a process was killed: %d runs go on one by one", len(running))
    pieces = [[job] for job in running] + ([waiting] if waiting else [])
    ended = [pair for piece in pieces for pair in _launch_batch(launcher, piece, wait)]
    return [(job, None) for job in done] + ended
