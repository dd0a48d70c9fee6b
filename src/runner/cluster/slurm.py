"""Slurm's commands: what waits and runs, a submission and what its refusal means."""

import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from io import StringIO
from typing import Any, NamedTuple

import submitit

from runner.core.errors import InputError

ENDED = (
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED GONE NODE_FAIL OUT_OF_MEMORY PREEMPTED REVOKED"
    " TIMEOUT"
)
"""States of tasks that neither run nor will."""

QUERY_SECONDS = 60
"""A busy controller may take long to answer."""


class Unreachable(InputError):
    """The scheduler does not answer; what it said last still holds."""


class Seen(NamedTuple):
    """A task as the scheduler sees it: 7_0, or 7 where it is alone. reason: why it waits or ended.

    GONE: some minutes after its end it is forgotten.
    """

    task: str
    state: str = "GONE"
    reason: str = "None"

    @property
    def job(self) -> str:
        """The number of the job, which an array of tasks shares."""
        return self.task.partition("_")[0]

    @property
    def is_alive(self) -> bool:
        """Whether it runs or will."""
        return self.state not in ENDED.split()

    def __str__(self) -> str:
        return self.state + (f" ({self.reason})" if self.reason != "None" else "")


def look(jobs: Iterable[str]) -> dict[str, Seen]:
    """Return what the queue knows of all tasks of these jobs, by task. Raises Unreachable."""
    ids = ",".join(jobs)
    listing = ask("squeue", "-h", "-r", "-t", "all", "-o", "%i|%T|%r", "-j", ids) if ids else ""
    return {seen.task: seen for seen in (Seen(*line.split("|")) for line in listing.splitlines())}


def submit(works: Sequence[Callable], wishes: dict[str, Any]) -> str:
    """Put works into the queue, several as one array; return the number of the job.

    wishes: keys of `hydra.launcher`. Raises InputError when they are refused.
    """
    given = {f"slurm_{key}": value for key, value in wishes.items()}
    folder, timeouts = given.pop("slurm_submitit_folder"), given.pop("slurm_max_num_timeout")
    if cpus := given["slurm_cpus_per_task"]:  # since 22.05 srun does not take it from sbatch
        given["slurm_srun_args"] = [f"--cpus-per-task={cpus}"]
    try:
        with redirect_stderr(StringIO()):  # submitit says there what the exception says
            executor = submitit.AutoExecutor(folder, "slurm", slurm_max_num_timeout=timeouts)
            executor.update_parameters(**given)
            return Seen(executor.submit_array(works)[0].job_id).job
    except Exception as error:  # of whatever kind: nothing has been started
        text = " ".join(str(error).rpartition("sbatch: error: ")[2].split())
        with suppress(Unreachable):
            lines = ask("sinfo", "-h", "-o", "%P up to %l, GPUs: %G").splitlines()
            known = "; ".join(sorted({" ".join(line.split()) for line in lines}))
            text += f"\nhydra.launcher.partition=... is one of {known.replace('(null)', 'none')}"
        raise InputError(f"Slurm cannot start jobs: {text}") from error


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep Ctrl-C back until a submission is whole, and noted: sbatch would take it, too."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def ask(*command: str) -> str:
    """Return what a command of Slurm prints. Raises Unreachable when it comes to no answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=QUERY_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable(f"Slurm does not answer: {error}") from error
    if done.returncode and "Invalid job id" not in done.stderr:
        raise Unreachable(f"Slurm does not answer: {' '.join(done.stderr.split())}")
    return done.stdout
