"""What Slurm says of its jobs and of a submission, and how it is told to cancel."""

import re
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

ALIVE = {
    "PENDING",
    "RUNNING",
    "CONFIGURING",
    "COMPLETING",
    "REQUEUED",
    "REQUEUE_HOLD",
    "REQUEUE_FED",
    "RESIZING",
    "RESV_DEL_HOLD",
    "SIGNALING",
    "SPECIAL_EXIT",
    "STAGE_OUT",
    "STOPPED",
    "SUSPENDED",
}
"""States of jobs that run, or will."""

QUERY_SECONDS = 60
"""A busy controller may take long to answer."""


class Unreachable(Exception):
    """The scheduler does not answer; what it said last still holds."""


@dataclass(frozen=True)
class Seen:
    """A job as the scheduler sees it."""

    state: str
    reason: str = ""
    """Why it waits, or why it ended."""

    @property
    def is_alive(self) -> bool:
        """Whether it runs or will."""
        return self.state in ALIVE

    def __str__(self) -> str:
        return self.state + (f" ({self.reason})" if self.reason else "")


def job_of(task: str) -> str:
    """The number of the job, which an array of tasks shares: 7 of 7_3."""
    return task.partition("_")[0]


def look(jobs: Iterable[str]) -> dict[str, Seen]:
    """What the scheduler knows of all tasks of these jobs, by their ids (7_0, 7_1, 8).

    The queue remembers a job for some minutes after its end, accounting for good where it is on; a
    task that neither knows is absent. Raises Unreachable.
    """
    wanted = sorted(set(jobs))
    if not wanted:
        return {}
    ids = ",".join(wanted)
    found = parse(_ask("squeue", "-h", "-r", "-t", "all", "-o", "%i|%T|%r", "-j", ids))
    if missing := set(wanted) - set(map(job_of, found)):
        about = ("sacct", "-n", "-P", "-X", "-o", "JobID,State,ExitCode", "-j", ",".join(missing))
        with suppress(Unreachable):  # there need be no accounting
            found = parse(_ask(*about)) | found
    return found


def parse(listing: str) -> dict[str, Seen]:
    """States by task out of lines `id|state|reason`, of squeue or of sacct."""
    found = {}
    for line in listing.splitlines():
        task, state, reason = line.split("|")[:3]
        state, _, by = state.partition(" by ")  # CANCELLED by 1000
        if by:
            reason = f"by user {by}"
        elif reason in ("None", "0:0"):
            reason = ""
        elif code := re.fullmatch(r"(\d+):(\d+)", reason):
            reason = f"signal {code[2]}" if code[2] != "0" else f"exit code {code[1]}"
        found[task] = Seen(state.rstrip("+"), reason)
    return found


def cancel(tasks: Iterable[str]) -> None:
    """Cancel tasks; those that have ended are none of its concern. Raises Unreachable."""
    if tasks := sorted(tasks):
        _ask("scancel", *tasks)


def refusal(message: str, gpus: bool) -> str:
    """What a refused submission means, in one or two lines. message: what sbatch has said."""
    text = message.strip().rpartition("sbatch: error: ")[2] or message.strip()
    if "Invalid generic resource" in message and gpus:
        return (
            f"the partition has no GPUs ({text}).\nhydra/launcher=slurm-cpu needs none;"
            f" hydra.launcher.partition=... chooses another: {_partitions('%P %G', 'gpu')}"
        )
    if "invalid partition" in message.lower():
        return f"{text}.\nhydra.launcher.partition=... is one of: {_partitions('%P')}"
    if "time limit" in message.lower():
        limits = _partitions("%P up to %l")
        return f"{text}.\nhydra.launcher.timeout_min=... is in minutes; partitions: {limits}"
    return " ".join(text.split())


def _partitions(form: str, holding: str = "") -> str:
    """The partitions as `sinfo` names them, those alone whose line holds a word."""
    try:
        lines = _ask("sinfo", "-h", "-o", form).splitlines()
    except Unreachable:
        return "sinfo lists them"
    names = sorted({line.strip().replace("*", "") for line in lines if holding in line})
    return ", ".join(names) or "there is none"


def _ask(*command: str) -> str:
    """What a command of Slurm prints. Raises Unreachable when it does not come to an answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=QUERY_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable(f"{command[0]}: {error}") from error
    if done.returncode and "Invalid job id" not in done.stderr:
        raise Unreachable(f"{command[0]}: {' '.join(done.stderr.split())}")
    return done.stdout
