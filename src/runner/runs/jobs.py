"""A job: a run, its settings, and the attempt to compute it."""

import time
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from runner.core.catalogue import config_of
from runner.core.choices import names_images
from runner.core.folders import require_writable
from runner.core.settings import Settings
from runner.core.studies import StudyConfig
from runner.runs.run import Run


@dataclass(frozen=True)
class Job:
    """A run with its settings.

    config: the parameters of the run. overrides: the arguments `key=value` from which Hydra
    composes parameters and settings. untyped: those that a figure or an experiment sets alike for
    all its runs; nobody typed them.
    """

    config: StudyConfig
    settings: Settings
    overrides: tuple[str, ...] = ()
    untyped: frozenset[str] = frozenset()

    @cached_property
    def run(self) -> Run:
        """Return the run of these parameters in the folder of outputs."""
        shown = [word for word in self.overrides if is_shown(word) and word not in self.untyped]
        data = getattr(self.config, "data", None)
        own = [f"data={data}"] if names_images(data) else []  # Hydra composes no such argument
        return Run(self.config, self.settings.folder(), [*own, *shown])

    def __reduce__(self) -> tuple:
        """Pickle by values: the catalogue of the other process knows the study's class."""
        values = vars(self.config), self.settings, self.overrides, self.untyped
        return _job, (self.config.study, *values)


def is_shown(word: str) -> bool:
    """Return whether an argument is printed with a run: its study and most settings are not."""
    key = word.partition("=")[0]
    return not key.startswith("hydra") and key not in UNSHOWN


UNSHOWN = {"grids", *(item.name for item in fields(Settings))} - {"scale", "figure", "note"}


def _job(study: str, values: dict[str, Any], *others: Any) -> Job:
    return Job(config_of(study)(**values), *others)


def complete(job: Job, turn: int = 0, n_jobs: int = 1) -> Run:
    """Compute the run of a job unless it is complete; return the run.

    turn: number of the job in its sweep. n_jobs: how many jobs run side by side. Raises InputError,
    RunFailed or Busy as `execution.execute` does.
    """
    from runner.runs.execution import execute  # late, with torch: where all is complete, none runs

    require_writable(job.settings.folder())
    execute(job.run, job.settings, turn, n_jobs)
    return job.run


class Attempt:
    """A job that has been launched, with what its run's result was before the launch.

    A result from before the launch does not count as done, if the run had to be computed again.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        # What another process has completed by now is done.
        self.before = self._result() if job.run.is_wanted(job.settings) else None
        self.begun = time.time()

    def is_done(self) -> bool:
        """Return whether the run has been completed, by this launch or by another process."""
        return self._result() != self.before and self.job.run.is_complete()

    def error(self) -> str:
        """Return the last line of the run's error; empty if there was none since the launch."""
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
