"""What a launcher calls where a job runs, and what the terminal sees of it."""

import logging
from contextlib import ExitStack

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from tqdm import tqdm

from runner.core import progress
from runner.runs.jobs import Job, complete


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
