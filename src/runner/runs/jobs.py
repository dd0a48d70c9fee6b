"""A job: a run, its settings, and the attempt to compute it."""

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
    """A run with its settings, and the overrides from which Hydra composes both."""

    config: StudyConfig
    settings: Settings
    overrides: tuple[str, ...] = ()

    @cached_property
    def run(self) -> Run:
        """The run that the job is."""
        return Run(self.config, self.settings.folder())

    def __reduce__(self) -> tuple:
        """Pickle by values: the catalogue of the other process knows the study's class."""
        return _job, (self.config.study, vars(self.config), self.settings, self.overrides)


def _job(study: str, values: dict[str, Any], settings: Settings, overrides: tuple[str, ...]) -> Job:
    return Job(config_of(study)(**values), settings, overrides)


def complete(job: Job, turn: int = 0, n_jobs: int = 1) -> Run:
    """Complete the run of a job, and return the run.

    turn: number of the job in its sweep; n_jobs: how many jobs run side by side.
    """
    from runner.runs.execution import execute  # late, with torch: where all is complete, none runs

    require_writable(job.settings.folder())
    execute(job.run, job.settings, turn, n_jobs)
    return job.run


class Attempt:
    """A launched job, with the state of its run before: older results do not count."""

    def __init__(self, job: Job) -> None:
        self.job = job
        # What another process has completed by now is done.
        self.before = self._result() if job.run.is_wanted(job.settings) else None
        self.begun = time.time()

    def is_done(self) -> bool:
        """Return whether the run has been completed since the launch."""
        return self._result() != self.before and self.job.run.is_complete()

    def error(self) -> str:
        """Return the last line of the run's error since the launch; empty without one."""
        run = self.job.run
        last = run.again if run.again.is_dir() else run.folder
        with suppress(OSError, IndexError):
            text = last / "error.txt"
            if text.stat().st_mtime >= self.begun and run.status() == "failed":
                return text.read_text().splitlines()[-1]
        return ""

    def _result(self) -> tuple[int, int] | None:
        """Return inode and time of `result.json`; None if there is none."""
        with suppress(OSError):
            stat = self.job.run.result_path.stat()
            return stat.st_ino, stat.st_mtime_ns
        return None
