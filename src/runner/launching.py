"""Launching a sweep: each incomplete run once, one failure never stopping the others."""

import logging
from typing import Any

from hydra.core.utils import JobStatus
from hydra.plugins.launcher import Launcher

from runner.errors import RunFailed
from runner.runs import Run
from runner.settings import Settings
from runner.studies import StudyConfig

log = logging.getLogger("runner")


def launch(
    launcher: Launcher, jobs: list[list[str]], composed: list[tuple[Settings, StudyConfig]]
) -> None:
    """Launch the jobs whose runs are not complete.

    jobs: the overrides of each job; composed: its settings and parameters. Raises RunFailed at the
    end when runs failed, with the path of each one's traceback.
    """
    wanted: dict[str, tuple[list[str], Run]] = {}
    runs: dict[str, Run] = {}
    for job, (settings, config) in zip(jobs, composed, strict=True):
        run = Run(config, settings.folder())
        if str(run.folder) in runs:
            continue
        runs[str(run.folder)] = run
        if settings.force or not run.is_complete():
            wanted[str(run.folder)] = (job, run)
    log.info("%d runs, %d of them complete", len(runs), len(runs) - len(wanted))
    fail_fast = composed[0][0].fail_fast
    failures: list[str] = []
    for batch in _batches(list(wanted.values()), fail_fast):
        returns = launcher.launch([job for job, _ in batch], initial_job_idx=0)
        failures += [
            _reason(run, returned)
            for (_, run), returned in zip(batch, returns, strict=True)
            if returned.status is not JobStatus.COMPLETED
        ]
        if failures and fail_fast:
            break
    if failures:
        raise RunFailed(f"{len(failures)} of {len(runs)} runs failed:\n" + "\n".join(failures))


def _batches(wanted: list, fail_fast: bool) -> list[list]:
    if fail_fast:
        return [[one] for one in wanted]
    return [wanted] if wanted else []


def _reason(run: Run, returned: Any) -> str:
    error = returned._return_value
    return str(error) if isinstance(error, RunFailed) else f"{run}: {error}"
