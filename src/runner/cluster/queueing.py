"""Queues: how tasks are submitted, and how a later command finds them.

The queue is Slurm's; for `hydra/launcher=local` each task is a process of this machine.
"""

import json
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import submitit
from hydra.plugins.launcher import Launcher

from runner.cluster import slurm
from runner.cluster.slurm import Seen
from runner.cluster.tasks import Drawing, Task, Work, drawing_label, label_of
from runner.core.errors import InputError
from runner.runs import files, lock
from runner.runs.files import write_atomically
from runner.runs.inventory import QUEUED
from runner.runs.jobs import Job

LARGEST_ARRAY = 1000
"""Tasks; Slurm's own limit, unless its administrator has set another."""

DRAWING = Needs(minutes=60, gibibytes=4)
"""For the drawing of figures."""


class Queue(ABC):
    """Tasks of submitit, behind a launcher. outputs: the folder whose runs are queued."""

    cluster: ClassVar[str]
    """As submitit calls it."""

    cancelling: ClassVar[str]
    """The command that cancels jobs by their numbers."""

    ask_seconds: float
    """Between two questions what became of the tasks; results are seen without."""

    def __init__(self, launcher: Launcher, outputs: Path) -> None:
        self.wishes: dict[str, Any] = launcher.params
        self.name: str = launcher.config.hydra.runtime.choices["hydra/launcher"]
        self.outputs = outputs
        self.records = outputs / QUEUED

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other commands on the same outputs from submitting."""
        self.records.mkdir(parents=True, exist_ok=True)
        with lock.held(self.records, wait=True, what=str(self.records)):
            yield

    @property
    @abstractmethod
    def on_gpu(self) -> bool:
        """Whether tasks may use the GPUs that they see."""

    @abstractmethod
    def living(self, forced: bool) -> dict[str, Task]:
        """The tasks of other commands that compute something here, by label. forced: with
        `force=true`.

        Raises InputError when the scheduler does not answer.
        """

    @abstractmethod
    def look(self, tasks: list[Task]) -> dict[str, Seen]:
        """What is known of the tasks, by id. Raises slurm.Unreachable."""

    @abstractmethod
    def cancel(self, tasks: list[Task]) -> None:
        """Cancel tasks that wait or run. Raises slurm.Unreachable."""

    def how_to_cancel(self, tasks: list[Task]) -> str:
        """The command that cancels the jobs of these tasks."""
        jobs = sorted({slurm.job_of(task.id) for task in tasks}, key=int)
        return f"{self.cancelling} {' '.join(jobs)}"

    def submit(self, jobs: list[Job], packed: bool = True) -> list[Task]:
        """Put jobs into the queue, short ones together if they may be packed.

        Raises InputError when the queue refuses them.
        """
        submitted: list[Task] = []
        forced = jobs[0].settings.force
        for needs, packs in self._packs(jobs, packed).items():
            changes = self._asking(needs, jobs)
            for start in range(0, len(packs), LARGEST_ARRAY):
                some = packs[start : start + LARGEST_ARRAY]
                labels = [[label_of(job.run, self.outputs) for job in pack] for pack in some]
                works = [Work(pack, self.on_gpu) for pack in some]
                try:
                    submitted += self._array(works, labels, changes, forced)
                except InputError as error:
                    if not submitted:
                        raise
                    left = self.how_to_cancel(submitted)
                    raise InputError(f"{error}\nOthers are in the queue: {left}") from error
        return submitted

    def submit_drawing(self, variants: list[PaperFigure], after: set[str]) -> Task:
        """Put the drawing of figures into a queue that outlives the command.

        after: the jobs that compute their runs. Raises InputError when the queue refuses it.
        """
        changes = {
            "timeout_min": DRAWING.minutes,
            "mem_gb": DRAWING.gibibytes,
            "cpus_per_task": 1,
            "dependency": ":".join(["afterany", *sorted(after)]) if after else None,
            **dict.fromkeys(("gpus_per_node", "gpus_per_task", "cpus_per_gpu", "gres")),
            **dict.fromkeys(("mem_per_cpu", "mem_per_gpu")),
        }
        labels = [[drawing_label(variants)]]
        return self._array([Drawing(variants)], labels, changes, forced=False)[0]

    @abstractmethod
    def _packs(self, jobs: list[Job], packed: bool) -> dict[Needs, list[list[Job]]]:
        """The jobs of each task, by what the task needs."""

    @abstractmethod
    def _asking(self, needs: Needs, jobs: list[Job]) -> dict[str, Any]:
        """What the launcher's configuration leaves open, as submitit calls it."""

    def _array(
        self, works: list[Any], labels: list[list[str]], changes: dict[str, Any], forced: bool
    ) -> list[Task]:
        """Submit one array; what its tasks compute is noted where it outlives the command."""
        said = StringIO()  # submitit repeats there what the exception says
        try:
            with redirect_stderr(said), self._undisturbed():
                jobs = self._executor(changes).submit_array(works)
                tasks = [
                    Task(job, tuple(each), len(works))
                    for job, each in zip(jobs, labels, strict=True)
                ]
                self._note(tasks, forced)
        except Exception as error:  # of whatever kind: nothing has been started
            text = slurm.refusal(str(error), self.on_gpu)
            raise InputError(f"hydra/launcher={self.name} cannot start jobs: {text}") from error
        return tasks

    @abstractmethod
    def _undisturbed(self) -> AbstractContextManager[None]:
        """For a submission, which is to be whole."""

    @abstractmethod
    def _note(self, tasks: list[Task], forced: bool) -> None:
        """Note what the tasks of one array compute, for later commands."""

    def _executor(self, changes: dict[str, Any]) -> submitit.AutoExecutor:
        from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf

        params = self.wishes | changes
        timeouts = params.pop("max_num_timeout", 0)
        executor = submitit.AutoExecutor(
            params.pop("submitit_folder"), self.cluster, slurm_max_num_timeout=timeouts
        )
        shared = {field.name for field in fields(BaseQueueConf)}
        executor.update_parameters(
            **{key if key in shared else f"{self.cluster}_{key}": params[key] for key in params}
        )
        return executor


class LocalQueue(Queue):
    """Each task a process of this machine, which ends with the command."""

    cluster = "local"
    cancelling = "kill"
    ask_seconds = 0.5

    @property
    def on_gpu(self) -> bool:
        """Tasks use what the machine has."""
        return True

    def living(self, forced: bool) -> dict[str, Task]:
        """None: leases tell what other commands compute."""
        return {}

    def look(self, tasks: list[Task]) -> dict[str, Seen]:
        """Whether the processes run."""
        return {task.id: Seen("ENDED" if task.job.done() else "RUNNING") for task in tasks}

    def cancel(self, tasks: list[Task]) -> None:
        """End the processes."""
        for task in tasks:
            task.job.cancel(check=False)

    def _packs(self, jobs: list[Job], packed: bool) -> dict[Needs, list[list[Job]]]:
        return {Needs(self.wishes["timeout_min"], 0): [[job] for job in jobs]}

    def _asking(self, needs: Needs, jobs: list[Job]) -> dict[str, Any]:
        return {}

    def _undisturbed(self) -> AbstractContextManager[None]:
        return nullcontext()  # processes would inherit blocked signals

    def _note(self, tasks: list[Task], forced: bool) -> None:
        pass


class SlurmQueue(Queue):
    """Arrays of Slurm. What is in the queue is recorded, so that later commands find it there."""

    cluster = "slurm"
    cancelling = "scancel"
    ask_seconds = 10.0

    @property
    def on_gpu(self) -> bool:
        """Whether GPUs are asked for: a node may have some that are not this task's."""
        return any(self.wishes.get(wish) for wish in ("gpus_per_node", "gpus_per_task", "gres"))

    def living(self, forced: bool) -> dict[str, Task]:
        """By the records; those of what has ended are deleted."""
        records = {path: _record(path) for path in self.records.glob("*.json")}
        try:
            seen = slurm.look(path.stem for path in records)
        except slurm.Unreachable as error:
            raise InputError(f"hydra/launcher={self.name} cannot start jobs: {error}") from error
        found = {}
        for path, record in records.items():
            ids = _ids(path.stem, len(record["tasks"]))
            alive = [task in seen and seen[task].is_alive for task in ids]
            if not any(alive):
                path.unlink(missing_ok=True)
            for task, labels, lives in zip(ids, record["tasks"], alive, strict=True):
                if lives and record["forced"] == forced:
                    job = submitit.SlurmJob(self.wishes["submitit_folder"], task)
                    found |= dict.fromkeys(labels, Task(job, tuple(labels), len(ids)))
        return found

    def look(self, tasks: list[Task]) -> dict[str, Seen]:
        """What the scheduler says."""
        return slurm.look(slurm.job_of(task.id) for task in tasks)

    def cancel(self, tasks: list[Task]) -> None:
        """By the scheduler."""
        slurm.cancel(task.id for task in tasks)

    def _packs(self, jobs: list[Job], packed: bool) -> dict[Needs, list[list[Job]]]:
        return costs.packed(jobs, self.wishes, costs.PACK_SECONDS if packed else 0)

    def _asking(self, needs: Needs, jobs: list[Job]) -> dict[str, Any]:
        asking: dict[str, Any] = {"timeout_min": needs.minutes}
        if not (self.wishes.get("mem_per_cpu") or self.wishes.get("mem_per_gpu")):
            asking["mem_gb"] = needs.gibibytes
        if not self.wishes.get("cpus_per_gpu"):
            asking["cpus_per_task"] = self.wishes.get("cpus_per_task") or _threads(jobs)
        return asking

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Ctrl-C is kept back until the submission is whole: sbatch would take it too."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _note(self, tasks: list[Task], forced: bool) -> None:
        record = {"forced": forced, "tasks": [task.labels for task in tasks]}
        path = self.records / f"{slurm.job_of(tasks[0].id)}.json"
        write_atomically(path, json.dumps(record).encode())

    def _executor(self, changes: dict[str, Any]) -> submitit.AutoExecutor:
        executor = super()._executor(changes)
        if cpus := (self.wishes | changes).get("cpus_per_task"):  # since 22.05 not inherited
            executor.update_parameters(slurm_srun_args=[f"--cpus-per-task={cpus}"])
        return executor


def queue_of(launcher: Launcher, outputs: Path) -> Queue:
    """The queue behind a launcher that has one (`launching.has_queue`)."""
    is_slurm = type(launcher).__name__ == "SlurmLauncher"
    return (SlurmQueue if is_slurm else LocalQueue)(launcher, outputs)


def _record(path: Path) -> dict[str, Any]:
    """What is noted of a job; of what cannot be read, that it computes nothing."""
    try:
        record = json.loads(files.read(path))
        return {"forced": bool(record["forced"]), "tasks": list(record["tasks"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {"forced": False, "tasks": []}


def _ids(job: str, tasks: int) -> list[str]:
    return [job] if tasks == 1 else [f"{job}_{index}" for index in range(tasks)]


def _threads(jobs: list[Job]) -> int:
    """The CPUs that a task needs. Raises InputError where `threads=null` leaves that open."""
    threads = [job.settings.threads for job in jobs]
    if None in threads:
        raise InputError(
            "threads=null takes all the CPUs there are: say how many, threads=8 or"
            " hydra.launcher.cpus_per_task=8"
        )
    return max(threads)
