"""Tasks of a queue: what they do, and one that has been submitted."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import submitit

from runner.core.errors import InputError, RunFailed
from runner.results.paper_figures import PaperFigure
from runner.runs.jobs import Job
from runner.runs.provenance import COMMAND, command_line
from runner.runs.run import Run


def label_of(run: Run, outputs: Path) -> str:
    """What a run is called in the records of the queue: its folder."""
    return str(run.folder.relative_to(outputs))


def drawing_label(variants: list[PaperFigure]) -> str:
    """What the drawing of figures is called in the records of the queue."""
    return " ".join(["drawing", *(f"{variant.scale}/{variant.name}" for variant in variants)])


class Work:
    """What a task does: its jobs, one after the other."""

    def __init__(self, jobs: list[Job], on_gpu: bool) -> None:
        self.command = command_line()
        self.jobs = [replace(job, settings=replace(job.settings, wait=False)) for job in jobs]
        for job in self.jobs:
            if job.settings.device == "auto" and not on_gpu:
                job.settings.device = "cpu"  # the node may have GPUs that are not this task's

    def __call__(self) -> dict[str, Exception | None]:
        """The error of each run by its label, None where it is complete."""
        os.environ[COMMAND] = self.command  # provenance tells what was typed
        log_to_terminal()
        with _interrupted_first():
            return {label_of(job.run, job.settings.folder()): _error_of(job) for job in self.jobs}

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """Asked for by submitit before a task is queued again: the runs know where they stood."""
        return submitit.helpers.DelayedSubmission(self)


@contextmanager
def _interrupted_first() -> Iterator[None]:
    """Interrupt the run when the end of the task is announced, then let submitit do its part.

    It queues the task again and ends it by an error, which is none of the run's.
    """
    announced: list[int] = []
    number = signal.SIGUSR2
    handler = signal.getsignal(number)

    def interrupt(*signalled: object) -> None:
        announced.append(number)
        raise KeyboardInterrupt

    signal.signal(number, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        signal.signal(number, handler)
        if announced and callable(handler):
            handler(number, None)
        raise
    finally:
        signal.signal(number, handler)


def _error_of(job: Job) -> Exception | None:
    try:
        run_study(job)
    except (InputError, RunFailed) as error:
        return error
    except Exception as error:  # whose class may not be known where it is read
        return RunFailed(f"{job.run} failed: {type(error).__name__}: {error}")
    return None


class Drawing:
    """What the last task of a sweep does: it draws the figures."""

    def __init__(self, variants: list[PaperFigure]) -> None:
        self.variants = variants

    def __call__(self) -> None:
        """Print what the commands that compute them would print at their end."""
        from runner.results.figures import make  # late: matplotlib

        for variant in self.variants:
            try:
                print(make(variant))
            except InputError as error:
                sys.exit(f"error: {error}")

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """As for `Work`."""
        return submitit.helpers.DelayedSubmission(self)


def fetch_data(jobs: list[Job]) -> None:
    """Fetch the datasets of jobs where they are absent: nodes may have no network.

    Raises InputError when one is in none of its places and cannot be fetched.
    """
    from runner.data.datasets import FROM_FILES  # late: torch

    wanted = {(getattr(job.config, "data", ""), job.settings.data_folder): job for job in jobs}
    for (data, folder), job in wanted.items():
        if data in FROM_FILES:
            FROM_FILES[data].files(job.settings.source, folder)


@dataclass(frozen=True)
class Task:
    """A task in the queue, and the labels of what it computes. tasks: how many its job has."""

    job: submitit.Job
    labels: tuple[str, ...]
    tasks: int = 1

    @property
    def id(self) -> str:
        """As the scheduler calls it: 7_0, or 7 where it is alone."""
        return self.job.job_id

    @property
    def log(self) -> Path:
        """Its log, as seen from the working directory where that holds it."""
        path = self.job.paths.stdout
        return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path

    def has_answered(self) -> bool:
        """Whether it has handed back its result."""
        with suppress(OSError):
            os.listdir(self.job.paths.folder)  # so that a network's file system looks again
        return self.job.paths.result_pickle.exists()
