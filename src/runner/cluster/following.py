"""Runs through Slurm's queue: what is missing is submitted, and followed by its folders.

Runs are idempotent, so that nothing in the queue depends on the command: it may end before them,
the same command finds them there, and a task whose run another computes ends at once.
"""

import json
import logging
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import submitit
from filelock import SoftFileLease
from omegaconf import OmegaConf

from runner.cluster import requests
from runner.core.errors import InputError
from runner.runs import files, lock
from runner.runs.inventory import QUEUED
from runner.runs.jobs import Attempt, Job, complete

if TYPE_CHECKING:
    import runner.cli.orders
    import runner.results.figure

log = logging.getLogger("runner")

LOOK_SECONDS, ASK_SECONDS, SAY_SECONDS = 0.5, 10, 60
"""Between two looks at twenty folders, two questions to the scheduler, two lines on the queue."""

ENDED = (
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED GONE NODE_FAIL OUT_OF_MEMORY PREEMPTED TIMEOUT"
)
"""States of tasks that neither run nor will. GONE: forgotten, some minutes after the end."""

TRIES = {"CANCELLED": 0, "OUT_OF_MEMORY": 0, "BOOT_FAIL": 10, "NODE_FAIL": 10, "PREEMPTED": 10}
"""How often a run whose task ended so is computed, else twice: some deaths are of the cluster."""

OF_GPUS, OF_MEMORY = {"gpus_per_node", "gpus_per_task", "gres"}, {"mem_per_cpu", "mem_per_gpu"}

DRAWING = {"timeout_min": 60, "mem_gb": 4, "cpus_per_task": 1, "cpus_per_gpu": None}
DRAWING |= dict.fromkeys((*OF_GPUS, *OF_MEMORY))
"""What the task asks for that draws figures."""


class Seen(NamedTuple):
    """A task as the scheduler sees it: 7_0, or 7 where it is alone; its state, and why."""

    task: str
    state: str

    @property
    def job(self) -> str:
        """The number of the job, which an array of tasks shares."""
        return self.task.partition("_")[0]

    @property
    def is_alive(self) -> bool:
        """Whether it runs or will."""
        return self.state.split()[0] not in ENDED.split()


@dataclass
class Work(submitit.helpers.Checkpointable):
    """What a task does: its jobs, one after the other."""

    jobs: list[Job]

    def __call__(self) -> None:
        """Compute what others do not; errors are in the folders of the runs, and in the log."""
        log.addHandler(logging.StreamHandler())
        queue_again: Any = signal.signal(signal.SIGUSR2, signal.default_int_handler)
        for job in self.jobs:
            try:
                complete(job)
            except Exception as error:  # stops no other
                log.info("%s", error)
            except KeyboardInterrupt:  # Slurm's warning of the time limit; the run has let go
                queue_again(signal.SIGUSR2, None)
                raise


def draw(figures: list["runner.results.figure.Figure"]) -> None:
    """Print what the commands that compute figures would print at their end."""
    errors = []
    for figure in figures:
        try:
            print(figure.make())
        except InputError as error:
            errors.append(f"error: {error}")
    if errors:
        sys.exit("\n".join(errors))


class Following:
    """The attempts of an order on their way through the queue, until each has ended.

    Raises InputError when the queue refuses them, Slurm does not answer, or the number of CPUs is
    left open.
    """

    def __init__(self, order: "runner.cli.orders.Order", attempts: list[Attempt]) -> None:
        self.settings, self.total = order.settings, len(attempts)
        wishes: Any = OmegaConf.to_container(order.composed.hydra.launcher, resolve=True)
        self.wishes, self.given = wishes, {key: value for key, value in wishes.items() if value}
        self.on_gpu = bool(self.given.keys() & OF_GPUS)
        if self.settings.threads is None and "cpus_per_task" not in self.given:
            raise InputError("threads=null: say how many CPUs, hydra.launcher.cpus_per_task=8")
        self.notes = self.settings.folder() / QUEUED
        self.alone = SoftFileLease(self.notes / ".lease", lease_duration=60)  # of all commands
        self.open = {"/".join(each.job.run.folder.parts[-3:]): each for each in attempts}
        """Those that have not ended, by label: the folder of the run in the outputs."""
        self.seen: dict[str, Seen] = {}
        """The last task of each label in the queue."""
        self.gibibytes = defaultdict[str, int](int)
        self.absent, self.tries = Counter[str](), Counter[str]()
        self.failures: list[str] = []
        self._submit(list(self.open), requests.PACK_SECONDS)

    def follow(self) -> list[str]:
        """Wait until all have ended; return what failed, in lines."""
        asked = said = time.monotonic()
        try:
            while self.open and not (self.failures and self.settings.fail_fast):
                time.sleep(LOOK_SECONDS * max(1, len(self.open) / 20))
                self.open = {label: each for label, each in self.open.items() if not each.is_done()}
                if time.monotonic() - asked >= ASK_SECONDS:
                    self._ask()
                    asked = time.monotonic()
                if self.open and time.monotonic() - said >= SAY_SECONDS:
                    log.info("%s", self._count())
                    said = time.monotonic()
        except KeyboardInterrupt:
            log.info("left in the queue, where the same command finds them: %s", self._count())
            raise
        if rest := {self.seen[label].task for label in self._queued(self.open)}:
            ask("scancel", *rest)
            log.info("fail_fast=true: cancelled %s", " ".join(sorted(rest)))
        return self.failures

    def draw_afterwards(self, figures: list["runner.results.figure.Figure"]) -> None:
        """Queue the drawing of figures behind what is in the queue, unless it waits there."""
        label = " ".join(["drawing", *(f"{figure.scale}/{figure.name}" for figure in figures)])
        with self.alone:
            self._look()
            if not self._queued([label]):
                jobs = {self.seen[each].job for each in self._queued(self.open)}
                after = {"dependency": ":".join(["afterany", *jobs]) if jobs else None}
                self._put([partial(draw, figures)], [[label]], self.wishes | DRAWING | after)
        log.info("job %s starts when all runs have ended: %s", self.seen[label].task, label)

    def _look(self) -> None:
        """Ask for the tasks of all jobs that are noted. Notes of jobs that have ended go."""
        notes = {path.stem: _packs_in(path) for path in self.notes.glob("*.json")}
        command = ("squeue", "-h", "-r", "-t", "all", "-o", "%i|%T (%r)", "-j", ",".join(notes))
        lines = ask(*command).replace(" (None)", "").splitlines() if notes else []
        known = dict(line.split("|", 1) for line in lines)
        found: dict[str, Seen] = {}
        for job in sorted(notes, key=int):
            ids = [job] if len(notes[job]) == 1 else [f"{job}_{i}" for i in range(len(notes[job]))]
            tasks = [Seen(task, known.get(task, "GONE")) for task in ids]
            for task, labels in zip(tasks, notes[job], strict=True):
                found |= dict.fromkeys(labels, task)
            if not any(task.is_alive for task in tasks):
                (self.notes / f"{job}.json").unlink(missing_ok=True)
        gone = {label: Seen(self.seen[label].task, "GONE") for label in self._queued(self.seen)}
        self.seen |= gone | found

    def _queued(self, labels: Iterable[str]) -> list[str]:
        """Return the labels whose task waits or runs."""
        return [label for label in labels if label in self.seen and self.seen[label].is_alive]

    def _submit(self, labels: list[str], seconds: float) -> None:
        """Have runs computed, by the tasks that do already or by new ones.

        seconds: how long a task of several takes. Raises InputError when they are refused.
        """
        with self.alone:
            self._look()
            if found := self._queued(labels):
                numbers = " ".join(sorted({self.seen[label].job for label in found}))
                log.info("found in the queue: job %s (runs: %d)", numbers, len(found))
            left = [each for each in labels if each not in found and not self.open[each].is_done()]
            jobs = {label: self._job(label) for label in left}
            if not self.given.keys() & {"mem_gb", *OF_MEMORY}:
                new = {label: jobs[label] for label in left if label not in self.gibibytes}
                self.gibibytes |= requests.memory(new, self.on_gpu)
            arrays = requests.packed(jobs, self.gibibytes, self.wishes["timeout_min"], seconds)
            for (minutes, gibibytes, _), packs in arrays.items():
                cpus = None if "cpus_per_gpu" in self.given else self.settings.threads
                asked = {"timeout_min": minutes, "mem_gb": gibibytes or None, "cpus_per_task": cpus}
                works = [Work([jobs[label] for label in pack]) for pack in packs]
                self._put(works, packs, self.wishes | asked | self.given)
        self.tries.update(labels)

    def _job(self, label: str) -> Job:
        """Return the job for a node: what others compute is theirs, and GPUs are asked for."""
        job, device = self.open[label].job, self.open[label].job.settings.device
        device = "cpu" if device == "auto" and not self.on_gpu else device
        return replace(job, settings=replace(job.settings, wait=False, device=device))

    def _put(self, works: Sequence, packs: list[list[str]], wishes: dict[str, Any]) -> None:
        """Submit one array, and note what its tasks compute. Raises InputError when refused."""
        given = {f"slurm_{key}": value for key, value in wishes.items() if key != "_target_"}
        folder, timeouts = given.pop("slurm_submitit_folder"), given.pop("slurm_max_num_timeout")
        if cpus := given["slurm_cpus_per_task"]:  # since 22.05 srun does not take it from sbatch
            given["slurm_srun_args"] = [f"--cpus-per-task={cpus}"]
        try:
            with redirect_stderr(StringIO()):  # submitit says there what the exception says
                executor = submitit.AutoExecutor(folder, "slurm", slurm_max_num_timeout=timeouts)
                executor.update_parameters(**given)
                job = executor.submit_array(works)[0].job_id.partition("_")[0]
        except Exception as error:  # of whatever kind: nothing has been started
            text = " ".join(str(error).rpartition("sbatch: error: ")[2].split())
            with suppress(InputError):
                lines = sorted(set(ask("sinfo", "-h", "-o", "%P up to %l, GPUs: %G").splitlines()))
                text += f"\nhydra.launcher.partition=... is one of {'; '.join(lines)}"
            raise InputError(f"Slurm cannot start jobs: {text}") from error
        note = json.dumps({"tasks": packs}).encode()
        files.write_atomically(self.notes / f"{job}.json", note)
        told = (job, len(packs), sum(map(len, packs)), self._log(f"{job}*"), job)
        log.info("submitted job %s (tasks: %d, runs: %d), logs %s, cancel: scancel %s", *told)
        self._look()

    def _log(self, task: str) -> str:
        return f"{self.wishes['submitit_folder'].replace('%j', task)}/{task}_0_log.out"

    def _ask(self) -> None:
        """Settle runs that have failed or whose task has died, and submit again what is to be."""
        try:
            self._look()
            again = [label for label in list(self.open) if self._is_to_be_tried_again(label)]
            if again:  # each in its own task: which of a task's runs has killed it is unknown
                self._submit(again, 0)
        except InputError as error:  # what is in the queue goes on
            log.info("%s", error)

    def _is_to_be_tried_again(self, label: str) -> bool:
        """Return whether a run's task has died, and not too often; else fail what has failed.

        A result may be slow to appear, and a preempted job to be queued again: a second look tells.
        """
        attempt, task, run = self.open[label], self.seen[label], self.open[label].job.run
        is_at_work = task.is_alive or self.settings.wait and lock.is_held(run.folder) is not False
        self.absent[label] = 0 if is_at_work else self.absent[label] + 1
        error, is_dead = attempt.error(), self.absent[label] > 1
        said = f"job {task.task} {task.state}; log {self._log(task.task)}"
        if is_dead and not error and self.tries[label] < TRIES.get(task.state.split()[0], 2):
            log.info("%s: %s; queued again", run, said)
            return True
        if is_dead or error:
            self.failures.append(f"{run} failed: {'; '.join(filter(None, (error, said)))}")
            del self.open[label]
        return False

    def _count(self) -> str:
        """Return how many runs have ended, how the tasks of the others are, and their jobs."""
        tasks = {self.seen[label] for label in self.open}
        states = Counter(task.state for task in tasks).items()
        told = [f"{count} {state}" for state, count in states]
        cancel = f"cancel: scancel {' '.join(sorted({task.job for task in tasks}))}"
        return ", ".join([f"{self.total - len(self.open)} of {self.total} runs", *told, cancel])


def _packs_in(note: Path) -> list[list[str]]:
    """Return the labels of each task of a job; none where the note cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        return list(json.loads(files.read(note))["tasks"])
    return []


def ask(*command: str) -> str:
    """Return what a command of Slurm prints. Raises InputError when it does not answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode and "Invalid job id" not in done.stderr:
            raise OSError(" ".join(done.stderr.split()))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"Slurm does not answer: {error}") from error
    return done.stdout
