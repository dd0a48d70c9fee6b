"""Runs through Slurm's queue: what is missing is submitted, and followed by its folders.

Runs are idempotent, so that nothing in the queue depends on the command: it may end before them,
the same command finds them there, and a task whose run another computes ends at once.
"""

import json
import logging
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import submitit
from filelock import SoftFileLease
from omegaconf import OmegaConf

from runner.cluster import requests, slurm
from runner.cluster.slurm import Seen
from runner.core.errors import Busy, InputError, RunFailed
from runner.results.paper_figures import PaperFigure
from runner.runs import files, locks
from runner.runs.inventory import QUEUED

if TYPE_CHECKING:
    from runner.cli.composing import Job
    from runner.cli.orders import Order
    from runner.cli.working import Attempt

log = logging.getLogger("runner")

LOOK_SECONDS, ASK_SECONDS, SAY_SECONDS = 0.5, 10, 60
"""Between two looks at twenty folders, two questions to the scheduler, two lines on the queue."""

LARGEST_ARRAY = 1000
"""Tasks; Slurm's own limit, unless its administrator has set another."""

OF_THE_CLUSTER = ("NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED")
"""Deaths that are no fault of the run."""

MOST_TRIES = 10
"""Of a run whose tasks the cluster ends; one that dies for reasons of its own is tried twice."""

OF_GPUS, OF_MEMORY = ("gpus_per_node", "gpus_per_task", "gres"), {"mem_per_cpu", "mem_per_gpu"}

DRAWING = {"timeout_min": 60, "mem_gb": 4, "cpus_per_task": 1, "cpus_per_gpu": None}
DRAWING |= dict.fromkeys((*OF_GPUS, *OF_MEMORY))
"""What the task asks for that draws figures."""


class Work(submitit.helpers.Checkpointable):
    """What a task does: its jobs by label, one after the other. compute: computes one's run."""

    def __init__(self, jobs: dict[str, "Job"], compute: Callable[["Job"], object]) -> None:
        self.jobs, self.compute = jobs, compute

    def __call__(self) -> dict[str, str]:
        """Return what runs say that have failed, by label."""
        queue_again = signal.signal(signal.SIGUSR2, signal.default_int_handler)
        errors = {}
        for label, job in self.jobs.items():
            try:
                self.compute(job)
            except Busy as error:
                log.info("%s", error)
            except (InputError, RunFailed) as error:
                errors[label] = str(error)
            except KeyboardInterrupt:  # Slurm's warning of the time limit; the run has let go
                queue_again(signal.SIGUSR2, None)
                raise
        return errors


def draw(figures: list[PaperFigure]) -> None:
    """Print what the commands that compute figures would print at their end."""
    from runner.results.figures import make  # late: matplotlib

    for figure in figures:
        try:
            print(make(figure))
        except InputError as error:
            sys.exit(f"error: {error}")


class Following:
    """The attempts of an order on their way through the queue, until each has ended.

    compute: computes the run of a job, on a node. Raises InputError when the queue refuses them.
    """

    def __init__(
        self, order: "Order", attempts: list["Attempt"], compute: Callable[["Job"], object]
    ) -> None:
        self.settings, self.compute, self.total = order.settings, compute, len(attempts)
        self.wishes = OmegaConf.to_container(order.composed.hydra.launcher, resolve=True)
        self.wishes.pop("_target_")
        self.folder = self.wishes["submitit_folder"]
        self.on_gpu = any(map(self.wishes.get, OF_GPUS))
        self.notes = self.settings.folder() / QUEUED
        self.notes.mkdir(parents=True, exist_ok=True)
        self.open = {"/".join(each.job.run.folder.parts[-3:]): each for each in attempts}
        """Those that have not ended, by label: the folder of the run in the outputs."""
        self.seen: dict[str, Seen] = {}
        """The last task of each label in the queue."""
        self.gibibytes: dict[str, int] = {}
        self.absent, self.tries = Counter[str](), Counter[str]()
        self.failures: list[str] = []
        self.submit(list(self.open), requests.PACK_SECONDS)

    def submit(self, labels: list[str], pack_seconds: float) -> None:
        """Have runs computed, by the tasks that do already or by new ones.

        pack_seconds: how long a task of several takes. Raises InputError when they are refused.
        """
        with self._alone():
            self._look()
            found = [label for label in labels if self._is_queued(label)]
            self._say("found in the queue:", found)
            left = [label for label in labels if label not in found]
            jobs = {each: self._job(each) for each in left if not self.open[each].is_done()}
            for packs, wishes in self._arrays(jobs, pack_seconds) if jobs else ():
                works = [Work({each: jobs[each] for each in pack}, self.compute) for pack in packs]
                self._put(works, packs, wishes)
                self._say("submitted", [label for pack in packs for label in pack])
        self.tries.update(labels)

    def draw_afterwards(self, figures: list[PaperFigure]) -> None:
        """Queue the drawing of figures behind what is in the queue, unless it waits there."""
        label = " ".join(["drawing", *(f"{figure.scale}/{figure.name}" for figure in figures)])
        with self._alone():
            self._look()
            if not self._is_queued(label):
                jobs = {self.seen[each].job for each in self.open if self._is_queued(each)}
                after = {"dependency": ":".join(["afterany", *jobs]) if jobs else None}
                self._put([partial(draw, figures)], [[label]], self.wishes | DRAWING | after)
        task, names = self.seen[label].task, ", ".join(figure.name for figure in figures)
        log.info("job %s draws %s when they have ended, log %s", task, names, self._log(task))

    def follow(self) -> list[str]:
        """Wait until all have ended; return what failed, in lines."""
        asked = said = time.monotonic()
        try:
            while self.open:
                time.sleep(LOOK_SECONDS * max(1, len(self.open) / 20))
                for label in [each for each, attempt in self.open.items() if attempt.is_done()]:
                    del self.open[label]
                if time.monotonic() - asked >= ASK_SECONDS:
                    self._ask()
                    asked = time.monotonic()
                if self.failures and self.settings.fail_fast:
                    tasks = {self.seen[each].task for each in self.open if self._is_queued(each)}
                    slurm.ask("scancel", *tasks)
                    log.info("fail_fast=true: %s cancelled", counted(len(tasks), "task"))
                    break
                if time.monotonic() - said >= SAY_SECONDS:
                    log.info("%s", self._count())
                    said = time.monotonic()
        except KeyboardInterrupt:
            jobs = " ".join(sorted({self.seen[label].job for label in self.open}))
            log.info("left in the queue: job %s: %s", jobs, self._count())
            log.info("the same command goes on with them; cancel: scancel %s", jobs)
            raise
        return self.failures

    def _alone(self) -> SoftFileLease:
        """Return what keeps other commands on the same outputs from submitting."""
        return SoftFileLease(self.notes / ".lease", lease_duration=60)

    def _look(self) -> None:
        """Ask for the tasks of all jobs that are noted. Notes of jobs that have ended go."""
        notes = {path.stem: _packs_in(path) for path in self.notes.glob("*.json")}
        states, found = slurm.look(notes), {}
        for job in sorted(notes, key=int):
            several = len(notes[job]) > 1
            ids = [f"{job}_{index}" if several else job for index in range(len(notes[job]))]
            tasks = [states.get(task, Seen(task)) for task in ids]
            for task, labels in zip(tasks, notes[job], strict=True):
                found |= dict.fromkeys(labels, task)
            if not any(task.is_alive for task in tasks):
                (self.notes / f"{job}.json").unlink(missing_ok=True)
        gone = {label: Seen(each.task) for label, each in self.seen.items() if each.is_alive}
        self.seen |= gone | found

    def _is_queued(self, label: str) -> bool:
        return label in self.seen and self.seen[label].is_alive

    def _job(self, label: str) -> "Job":
        """Return the job for a node: what others compute is theirs, and GPUs are asked for."""
        job = self.open[label].job
        none = job.settings.device == "auto" and not self.on_gpu
        changed = replace(job.settings, wait=False, device="cpu" if none else job.settings.device)
        return replace(job, settings=changed)

    def _arrays(
        self, jobs: dict[str, "Job"], pack_seconds: float
    ) -> Iterator[tuple[list[list[str]], dict[str, Any]]]:
        """Yield the packs of labels of each array, and what its tasks ask for; what is typed wins.

        Raises InputError where the number of CPUs is left open.
        """
        given = {key: value for key, value in self.wishes.items() if value}
        threads = [job.settings.threads for job in jobs.values()]
        if None in threads and "cpus_per_task" not in given:
            raise InputError(
                "threads=null takes all the CPUs there are: say how many, threads=8 or"
                " hydra.launcher.cpus_per_task=8"
            )
        if given.keys() & {*OF_MEMORY, "mem_gb"}:
            self.gibibytes |= dict.fromkeys(jobs, 0)
        unknown = {label: job for label, job in jobs.items() if label not in self.gibibytes}
        self.gibibytes |= requests.memory(unknown, self.compute, self.on_gpu)
        minutes = self.wishes["timeout_min"]
        for needs, packs in requests.packed(jobs, self.gibibytes, minutes, pack_seconds).items():
            asked = {"timeout_min": needs[0], "mem_gb": needs[1] or None}
            asked["cpus_per_task"] = None if "cpus_per_gpu" in given else max(map(int, threads))
            for start in range(0, len(packs), LARGEST_ARRAY):
                yield packs[start : start + LARGEST_ARRAY], self.wishes | asked | given

    def _put(self, works: list[Callable], packs: list[list[str]], wishes: dict[str, Any]) -> None:
        """Submit one array, and note what its tasks compute. Raises InputError when refused."""
        with slurm.undisturbed():
            job = slurm.submit(works, wishes)
            note = json.dumps({"tasks": packs}).encode()
            files.write_atomically(self.notes / f"{job}.json", note)
        self._look()

    def _say(self, what: str, labels: list[str]) -> None:
        for job in dict.fromkeys(self.seen[label].job for label in labels):
            tasks = [self.seen[label].task for label in labels if self.seen[label].job == job]
            named = f"{counted(len(set(tasks)), 'task')}, {counted(len(tasks), 'run')}"
            logs = self.folder.replace("%j", f"{job}*")
            log.info("%s job %s (%s), logs %s, cancel: scancel %s", what, job, named, logs, job)

    def _log(self, task: str) -> str:
        return f"{self.folder.replace('%j', task)}/{task}_0_log.out"

    def _ask(self) -> None:
        """Settle runs whose tasks have ended without a result, and queue again what died.

        A result may be slow to appear, and a preempted job to be queued again: a second look tells.
        """
        try:
            self._look()
            again = [label for label in list(self.open) if self._is_to_be_tried_again(label)]
            if again:  # each in its own task: which of a task's runs has killed it is not known
                self.submit(again, 0)
        except slurm.Unreachable as error:
            log.info("%s: asked again", error)

    def _is_to_be_tried_again(self, label: str) -> bool:
        run, task = self.open[label].job.run, self.seen[label]
        is_held = self.settings.wait and not task.is_alive and locks.is_held(run.folder)
        self.absent[label] = 0 if task.is_alive or is_held else self.absent[label] + 1
        said = f"job {task.task} {task}; log {self._log(task.task)}"
        tries = MOST_TRIES if task.state in OF_THE_CLUSTER else 2
        if self.absent[label] and (error := self._error(label)):
            said = error
        elif self.absent[label] < 2:
            return False
        elif task.state == "OUT_OF_MEMORY":
            said += "; hydra.launcher.mem_gb=... asks for more"
        elif task.state != "CANCELLED" and self.tries[label] < tries:
            log.info("%s: %s; queued again", run, said)
            self.absent[label] = 0
            return True
        elif task.state != "CANCELLED":
            said += f"; it died {tries} times"
        self.failures.append(said if said.startswith(str(run)) else f"{run} failed: {said}")
        del self.open[label]
        return False

    def _error(self, label: str) -> str | None:
        """Return what the task of a run says of it; None where it says nothing."""
        job = submitit.SlurmJob(self.folder, self.seen[label].task)
        with suppress(Exception):  # the task itself has failed, as its log tells
            return job.result().get(label) if job.paths.result_pickle.exists() else None

    def _count(self) -> str:
        """Return how many runs have ended, and how the tasks of the others are."""
        tasks = {self.seen[label] for label in self.open}
        told = [f"{count} {state}" for state, count in Counter(map(str, tasks)).items()]
        return ", ".join([f"{self.total - len(self.open)} of {self.total} runs ended", *told])


def counted(number: int, what: str) -> str:
    """Return a number and its noun: `1 task`, `2 tasks`."""
    return f"{number} {what}{'s' * (number != 1)}"


def _packs_in(note: Path) -> list[list[str]]:
    """Return the labels of each task of a job; none where the note cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        return list(json.loads(files.read(note))["tasks"])
    return []


def follow(
    order: "Order", attempts: list["Attempt"], compute: Callable[["Job"], object]
) -> list[str]:
    """Have the runs of attempts computed by Slurm; return what failed, in lines.

    compute: computes the run of a job, on a node. Raises InputError when the queue refuses them, a
    dataset cannot be fetched, or the number of CPUs is left open.
    """
    fetch_data(order)
    return Following(order, attempts, compute).follow()


def submit(order: "Order", attempts: list["Attempt"], compute: Callable[["Job"], object]) -> None:
    """Put the runs of attempts into the queue, and the drawing of the order's figures behind them.

    Raises InputError as `follow` does.
    """
    fetch_data(order)
    following = Following(order, attempts, compute)
    if order.figures:
        following.draw_afterwards(order.figures)


def fetch_data(order: "Order") -> None:
    """Fetch the datasets of jobs where they are absent: nodes may have no network.

    Raises InputError when one is in none of its places and cannot be fetched.
    """
    from runner.data.datasets import FROM_FILES  # late: torch

    wanted = {
        (getattr(job.config, "data", ""), job.settings.data_folder): job for job in order.jobs
    }
    for (data, folder), job in wanted.items():
        if data in FROM_FILES:
            FROM_FILES[data].files(job.settings.source, folder)
