"""A job: a run to be, and how it is to be computed; where it runs, and what it leaves behind."""

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runner.core.catalogue import config_of
from runner.core.folders import require_writable
from runner.core.settings import Settings
from runner.core.studies import StudyConfig
from runner.runs.run import Run


@dataclass(frozen=True)
class Job:
    """One run to be: what it computes and how, and the overrides that Hydra composes it from."""

    config: StudyConfig
    settings: Settings
    overrides: tuple[str, ...] = ()

    @cached_property
    def run(self) -> Run:
        """The run that the job is."""
        return Run(self.config, self.settings.folder())

    def __reduce__(self) -> tuple:
        """Go to another process by values: what makes the study known there is in the catalogue."""
        return _job, (self.config.study, vars(self.config), self.settings, self.overrides)


def _job(study: str, values: dict[str, Any], settings: Settings, overrides: tuple[str, ...]) -> Job:
    return Job(config_of(study)(**values), settings, overrides)


def complete(job: Job, turn: int = 0, n_jobs: int = 1) -> Run:
    """Bring the run of a job to completion, and return it.

    turn, n_jobs: number of the job in its sweep, and how many run side by side.
    """
    from runner.runs.execution import execute  # late, with torch: where all is complete, none runs

    require_writable(job.settings.folder())
    execute(job.run, job.settings, turn, n_jobs)
    return job.run


class Attempt:
    """A job that is launched, and what its run was before: old results are none of this attempt."""

    def __init__(self, job: Job) -> None:
        self.job = job
        # What another process has completed by now is done.
        self.before = self._result() if job.run.is_wanted(job.settings) else None
        self.begun = time.time()

    def is_done(self) -> bool:
        """Return whether the run has been completed since."""
        return self._result() != self.before and self.job.run.is_complete()

    def error(self) -> str:
        """Return the last line of what the run has failed with since; empty: it has not."""
        run = self.job.run
        last = run.again if run.again.is_dir() else run.folder
        with suppress(OSError, IndexError):
            text = last / "error.txt"
            if text.stat().st_mtime >= self.begun and run.status() == "failed":
                return text.read_text().splitlines()[-1]
        return ""

    def _result(self) -> tuple[int, int] | None:
        """Return what tells one `result.json` from another; None where there is none."""
        try:
            about = self.job.run.result_path.stat()
        except OSError:
            return None
        return about.st_ino, about.st_mtime_ns
