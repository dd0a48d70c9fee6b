"""A job is a run with its settings. An attempt is a job that has been launched."""

import json
import time
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from runner.core.catalogue import config_of
from runner.core.folders import require_writable
from runner.core.settings import Settings
from runner.core.studies import StudyConfig
from runner.runs import lock
from runner.runs.files import read, write_atomically
from runner.runs.folder_names import old_of
from runner.runs.run import Run


@dataclass(frozen=True)
class Job:
    """A run with its settings.

    - config: the parameters of the run;
    - overrides: the arguments `key=value` from which Hydra composes parameters and settings;
    - untyped: the overrides that a figure or an experiment sets for all its runs. The user did not
      type them.
    """

    config: StudyConfig
    settings: Settings
    overrides: tuple[str, ...] = ()
    untyped: frozenset[str] = frozenset()

    @cached_property
    def run(self) -> Run:
        """Return the run with these parameters, in the folder of outputs."""
        shown = [word for word in self.overrides if is_shown(word) and word not in self.untyped]
        images = self.config.own_images()
        own = [f"data={images}"] if images else []  # Hydra composes no such argument
        return Run(self.config, self.settings.folder(), [*own, *shown])

    def __reduce__(self) -> tuple:
        """Pickle the job by values. Another process finds the study's class by name."""
        values = vars(self.config), self.settings, self.overrides, self.untyped
        return _job, (self.config.study, *values)


def is_shown(word: str) -> bool:
    """Return whether an argument `key=value` is printed as part of a run's name.

    Parameters are printed, and so are the settings scale, figure and note. The study, all other
    settings and Hydra's keys are not printed.
    """
    key = word.partition("=")[0]
    return not key.startswith("hydra") and key not in UNSHOWN


UNSHOWN = {"grids", *(item.name for item in fields(Settings))} - {"scale", "figure", "note"}


def _job(study: str, values: dict[str, Any], *others: Any) -> Job:
    return Job(config_of(study)(**values), *others)


def complete(job: Job, turn: int = 0, n_jobs: int = 1) -> Run:
    """Compute the run of a job unless it is complete; return the run.

    A complete run is computed again if the settings ask for it. turn: the job's number in its
    sweep. n_jobs: how many jobs run side by side. Raises InputError, RunFailed or Busy as
    `execution.execute` does.
    """
    from runner.runs.execution import execute  # late: it imports torch; complete runs need none

    require_writable(job.settings.folder())
    execute(job.run, job.settings, turn, n_jobs)
    return job.run


LAG = 0.1
"""Seconds by which the time of a new file may be behind the clock."""


SECONDS_TO_DIE = 3.0
"""Seconds that an interrupted command waits for the processes of its pool to end."""


class Attempt:
    """A job that has been launched. It remembers the result that the run had before.

    If the run had to be computed again, this earlier result does not count as done.
    """

    raised: Exception | None = None
    """The error with which the launch ended. Some leave no file, such as that of a full disk."""

    def __init__(self, job: Job) -> None:
        self.job = job
        # A run that another process has completed by now is done.
        self.before = self._result() if job.run.is_wanted(job.settings) else None
        self.begun = time.time()

    def is_done(self) -> bool:
        """Return whether this launch, or another process, has completed the run."""
        return self._result() != self.before and self.job.run.is_complete()

    def has_begun(self) -> bool:
        """Return whether a process has begun the run since the launch, and has not ended it."""
        with suppress(OSError):
            written = (self.job.run.folder / "provenance.json").stat().st_mtime
            return written >= self.begun - LAG and self.job.run.status() == "running"
        return False

    def mark_interrupted(self) -> None:
        """Record that the run was interrupted, if its process had no time to do so.

        A pool that is interrupted kills its processes. A process that still works is left alone.
        """
        run, deadline = self.job.run, time.monotonic() + SECONDS_TO_DIE
        while self.has_begun() and lock.is_held(run.folder):
            if time.monotonic() > deadline:
                return
            time.sleep(0.1)
        if self.has_begun():
            ended = {"status": "interrupted", "ended": datetime.now(UTC).isoformat("T", "seconds")}
            content = json.dumps(run.provenance() | ended, indent=2) + "\n"
            with suppress(OSError):  # a full disk
                write_atomically(run.folder / "provenance.json", content.encode())

    def error(self) -> str:
        """Return the last line of the run's error message.

        The text is empty if the run has not failed since the launch.
        """
        if self.raised:
            return str(self.raised)
        run = self.job.run
        with suppress(OSError, IndexError):
            text = run.folder / "error.txt"
            if text.stat().st_mtime >= self.begun and run.status() == "failed":
                return read(text).decode(errors="replace").splitlines()[-1]
        return ""

    def _result(self) -> tuple[int, int, Path | None] | None:
        """Return inode and time of `result.json`, and the folder of old numbers; or None."""
        with suppress(OSError):
            stat = self.job.run.result_path.stat()
            return stat.st_ino, stat.st_mtime_ns, old_of(self.job.run.folder)
        return None
