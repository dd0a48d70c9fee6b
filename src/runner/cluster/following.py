"""Following runs through a queue: each is collected by itself, and only what died is queued again.

The command may end before them: nothing in the queue depends on it, and the same command finds its
runs there.
"""

import logging
import time
from collections import Counter
from contextlib import suppress

from runner.cluster import slurm
from runner.cluster.queueing import Queue
from runner.cluster.slurm import Seen, job_of
from runner.cluster.tasks import Task, drawing_label, label_of
from runner.core.errors import Busy, InputError
from runner.core.settings import Settings
from runner.runs import lock

log = logging.getLogger("runner")

LOOK_SECONDS = 0.5
"""Between two looks at the folders of the tasks."""

MOST_LOOKS = 20
"""Folders in that time: a network's file system is others' too."""

SAY_SECONDS = 60
"""Between two lines that say how far the queue is."""

OF_THE_CLUSTER = {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED"}
"""Deaths that are no fault of the run."""

MOST_TRIES = 10
"""Of a run whose tasks the cluster ends; one that dies for reasons of its own is tried twice."""


class Following:
    """The attempts of a sweep on their way through a queue, until each has ended."""

    def __init__(self, queue: Queue, attempts: list[Attempt], settings: Settings) -> None:
        self.queue, self.settings = queue, settings
        self.attempts = {label_of(each.job.run, queue.outputs): each for each in attempts}
        self.tasks: dict[str, Task] = {}
        """Those that are waited for, by id."""
        self.seen: dict[str, Seen] = {}
        self.gone: Counter[str] = Counter()
        """How often a task without a result was found to have ended."""
        self.tries: Counter[str] = Counter()
        self.elsewhere: set[str] = set()
        """Runs that processes outside the queue compute."""
        self.failures: dict[str, str] = {}
        self.silent = False

    def submit(self) -> None:
        """Queue the attempts, or find them there. Raises InputError when they are refused."""
        self._submit(list(self.attempts), packed=True)

    def follow(self) -> list[str]:
        """Wait until all have ended; what became of those that failed."""
        try:
            self._follow()
        except KeyboardInterrupt:
            if self.tasks:
                with suppress(slurm.Unreachable):
                    self.seen = self.queue.look(list(self.tasks.values()))
                log.info(
                    "left in the queue: %s\nthe same command goes on with them; cancel: %s",
                    self._counts(),
                    self.queue.how_to_cancel(list(self.tasks.values())),
                )
            raise
        return list(self.failures.values())

    def draw_afterwards(self, variants: list[PaperFigure]) -> None:
        """Queue the drawing of figures behind what is in the queue, unless it waits there."""
        label = drawing_label(variants)
        with self.queue.alone():
            task = self.queue.living(forced=False).get(label)
            if task is None:
                task = self.queue.submit_drawing(variants, set(map(job_of, self.tasks)))
        figures = ", ".join(variant.name for variant in variants)
        log.info("job %s draws %s when they have ended, log %s", task.id, figures, task.log)

    def _follow(self) -> None:
        asked, said = 0.0, time.monotonic()
        while self.tasks or self.elsewhere:
            for task in list(self.tasks.values()):
                if task.has_answered():
                    self._collect(task)
            if time.monotonic() - asked >= self.queue.ask_seconds:
                self._ask()
                self._look_elsewhere()
                asked = time.monotonic()
            if time.monotonic() - said >= SAY_SECONDS and self.tasks:
                log.info("%s", self._counts())
                said = time.monotonic()
            if self.failures and self.settings.fail_fast:
                self._stop()
                return
            time.sleep(LOOK_SECONDS * max(1, len(self.tasks) / MOST_LOOKS))

    def _submit(self, labels: list[str], packed: bool) -> None:
        """Have these runs computed, by the tasks that do already or by new ones."""
        with self.queue.alone():
            labels = [label for label in labels if not self.attempts[label].is_done()]
            living = self.queue.living(self.settings.force)
            found = {living[label].id: living[label] for label in labels if label in living}
            jobs = [self.attempts[label].job for label in labels if label not in living]
            new = self.queue.submit(jobs, packed) if jobs else []
        self._say("found in the queue:", list(found.values()))
        self._say("submitted", new)
        for task in (*found.values(), *new):
            self.tasks[task.id] = task
            self.tries.update(task.labels)

    def _say(self, what: str, tasks: list[Task]) -> None:
        for job, count in Counter(job_of(task.id) for task in tasks).items():
            some = [task for task in tasks if job_of(task.id) == job]
            runs = sum(len(task.labels) for task in some)
            log.info(
                "%s job %s (%s, %s), logs %s, cancel: %s",
                what,
                job,
                _counted(count, "task"),
                _counted(runs, "run"),
                some[0].log if count == 1 else some[0].log.parent.with_name(f"{job}_*"),
                self.queue.how_to_cancel(some[:1]),
            )

    def _collect(self, task: Task) -> None:
        """Settle the runs of a task that has handed back its result."""
        del self.tasks[task.id]
        try:
            errors = task.job.result()
        except Exception as error:  # the task itself has failed, and submitit tells how
            text = _last_error(str(error))
            for label in self._open(task):
                self._fail(label, f"job {task.id}: {text}; log {task.log}")
            return
        for label in self._open(task):
            self._settle(label, errors.get(label), task)

    def _settle(self, label: str, error: Exception | None, task: Task) -> None:
        if isinstance(error, Busy) and self.settings.wait:
            self.elsewhere.add(label)
        elif error is not None:
            text = str(error)
            name = str(self.attempts[label].job.run)
            self.failures[label] = text if text.startswith(name) else f"{name} failed: {text}"
        else:
            self._fail(label, f"job {task.id} ended without a result; log {task.log}")

    def _open(self, task: Task) -> list[str]:
        """The runs of a task that this command wants, and that are not complete."""
        return [
            label
            for label in task.labels
            if label in self.attempts and not self.attempts[label].is_done()
        ]

    def _fail(self, label: str, text: str) -> None:
        self.failures[label] = f"{self.attempts[label].job.run} failed: {text}"

    def _ask(self) -> None:
        """Ask the scheduler about the tasks, and queue again what died."""
        try:
            self.seen = self.queue.look(list(self.tasks.values()))
            self.silent = False
        except slurm.Unreachable as error:
            if not self.silent:
                log.info("the scheduler does not answer (%s): asked again", error)
            self.silent = True
            return
        again: list[str] = []
        for task in list(self.tasks.values()):
            seen = self.seen.get(task.id, Seen("gone from the queue"))
            if seen.is_alive:
                self.gone[task.id] = 0
                continue
            self.gone[task.id] += 1
            # Its result may be slow to appear, a job that was preempted to be queued again.
            if self.gone[task.id] > 1 and not task.has_answered():
                again += self._bury(task, seen)
        self._submit_again(again)

    def _bury(self, task: Task, seen: Seen) -> list[str]:
        """Settle the runs of a task that died; those that are to be tried again."""
        del self.tasks[task.id]
        again = []
        for label in self._open(task):
            where = f"job {task.id} {seen}; log {task.log}"
            tries = MOST_TRIES if seen.state in OF_THE_CLUSTER else 2
            if seen.state == "CANCELLED":
                self._fail(label, where)
            elif seen.state == "OUT_OF_MEMORY":
                self._fail(label, f"{where}; hydra.launcher.mem_gb=... asks for more")
            elif self.tries[label] >= tries:
                self._fail(label, f"{where}; it died {self.tries[label]} times")
            else:
                log.info("%s: %s; queued again", self.attempts[label].job.run, where)
                again.append(label)
        return again

    def _look_elsewhere(self) -> None:
        """Queue again what other processes have left unfinished."""
        again = []
        for label in sorted(self.elsewhere):
            attempt = self.attempts[label]
            if attempt.is_done():
                self.elsewhere.remove(label)
            elif lock.is_held(attempt.job.run.folder) is False:
                self.elsewhere.remove(label)
                again.append(label)
        self._submit_again(again)

    def _submit_again(self, labels: list[str]) -> None:
        """Each in a task of its own: which of a task's runs has killed it is not known."""
        try:
            if labels:
                self._submit(labels, packed=False)
        except InputError as error:  # what is in the queue goes on
            for label in labels:
                self._fail(label, str(error))

    def _stop(self) -> None:
        """Cancel what has not ended, for one run has failed."""
        rest = list(self.tasks.values())
        with suppress(slurm.Unreachable):
            self.queue.cancel(rest)
        if rest:
            log.info("fail_fast=true: %s cancelled", _counted(len(rest), "task"))

    def _counts(self) -> str:
        """How many tasks are where, and why those wait that do."""
        parts = []
        for job, number in Counter(map(job_of, self.tasks)).items():
            some = [task for task in self.tasks.values() if job_of(task.id) == job]
            states = Counter(self.seen.get(task.id, Seen("PENDING")).state for task in some)
            said = [f"{count} {state.lower()}" for state, count in sorted(states.items())]
            waiting = [self.seen[task.id] for task in some if task.id in self.seen]
            reasons = {seen.reason for seen in waiting if seen.state == "PENDING" and seen.reason}
            if reasons:
                said.append(f"waiting for {', '.join(sorted(reasons))}")
            ended = f"{some[0].tasks - number} of {_counted(some[0].tasks, 'task')} ended"
            parts.append(f"job {job}: {', '.join([ended, *said])}")
        return "; ".join(parts)


def _last_error(trace: str) -> str:
    """What the last error of a traceback says, out of the text that submitit makes of it."""
    said = [line.partition("Error: ")[2] for line in trace.splitlines() if "Error: " in line]
    return said[-1] if said else trace.partition("\n")[0]


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
