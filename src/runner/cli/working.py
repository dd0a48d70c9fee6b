"""A job where it runs, and what it leaves behind."""

import logging
import time
from contextlib import ExitStack, suppress

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from tqdm import tqdm

from runner.cli.composing import Job
from runner.core import progress
from runner.core.folders import require_writable
from runner.runs.run import Run


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

    def has_failed(self) -> bool:
        """Return whether the run has failed since."""
        run = self.job.run
        last = run.again if run.again.is_dir() else run.folder
        with suppress(OSError):
            written = (last / "provenance.json").stat().st_mtime
            return written >= self.begun and run.status() == "failed"
        return False

    def _result(self) -> tuple[int, int] | None:
        """Return what tells one `result.json` from another; None where there is none."""
        try:
            about = self.job.run.result_path.stat()
        except OSError:
            return None
        return about.st_ino, about.st_mtime_ns


def work(jobs: list[Job], n_jobs: int, composed: DictConfig) -> Exception | None:
    """Bring the run of one of these jobs to completion; called by a launcher, wherever it likes.

    n_jobs: how many run side by side; composed: what Hydra makes of the job's overrides, which are
    read already. Hands back what goes wrong, so that the other jobs go on.
    """
    turn = HydraConfig.get().job.num
    try:
        with ExitStack() as stack:
            if n_jobs != 1:  # in a process of its own
                log_to_terminal()
                stack.enter_context(progress.told_of_all())
            complete(jobs[turn], turn, n_jobs)
    except Exception as error:
        return error
    return None


def complete(job: Job, turn: int = 0, n_jobs: int = 1) -> Run:
    """Bring the run of a job to completion, and return it.

    turn, n_jobs: number of the job in its sweep, and how many run side by side.
    """
    from runner.runs.devices import next_gpu  # late, with torch: where all is complete, none runs
    from runner.runs.execution import execute

    require_writable(job.settings.folder())
    job.settings.device = next_gpu(job.settings.device, turn, n_jobs)
    execute(job.run, job.settings)
    return job.run


def complete_elsewhere(job: Job) -> None:
    """Bring the run of a job to completion in a process of its own, wherever that is."""
    log_to_terminal()
    complete(job)


def log_to_terminal() -> None:
    """Send the log of the program to stderr, once."""
    log = logging.getLogger("runner")
    log.setLevel(logging.INFO)
    log.propagate = False
    if not log.handlers:
        handler = _AroundBars()
        handler.setFormatter(logging.Formatter("%(message)s"))
        handler.addFilter(progress.is_shown)
        log.addHandler(handler)


class _AroundBars(logging.StreamHandler):
    """Writes above a bar, which is there again afterwards."""

    def emit(self, record: logging.LogRecord) -> None:
        with tqdm.external_write_mode(self.stream):
            super().emit(record)


def log_everything() -> None:
    """Send the logs of all packages to stderr as well."""
    logging.getLogger().setLevel(logging.DEBUG)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logging.getLogger().handlers[:] = [handler]
