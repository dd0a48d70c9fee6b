"""Runs through a queue: presets, packs, records that are found again, deaths that cost one run.

The queue of these tests is a list; the real one is in scripts/slurm-test.
"""

import json
import math
import os
import pickle
import signal
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import submitit
from in_process import composed
from runner.cli.command import carry_out
from runner.cli.costs import Needs
from runner.cli.following import Following
from runner.cli.queueing import Queue, SlurmQueue, queue_of
from runner.cli.slurm import Seen
from runner.cli.sweeping import launcher_of
from runner.cli.tasks import Task, Work, label_of

from runner.cli import costs, following, launching, slurm, tasks
from runner.cli.composing import Job, compose_figure
from runner.cli.working import Attempt, run_study
from runner.core.errors import Busy, InputError, RunFailed
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import lock
from runner.runs.checkpoint import Checkpoint
from runner.runs.provenance import COMMAND

TINY = {"train_samples": 640, "test_samples": 100, "batch_size": 32, "replicates": 2}


def job(outputs: Path, width: int, **changes) -> Job:
    settings = Settings(outputs=str(outputs), **changes)
    return Job({}, settings, BnOnly(target_width=width, **TINY))


def label(outputs: Path, width: int) -> str:
    return label_of(job(outputs, width).run, outputs)


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """The queue of a preset, with further overrides."""
    monkeypatch.setattr(submitit.SlurmExecutor, "affinity", classmethod(lambda cls: 2))

    def build(preset: str, *overrides: str) -> Queue:
        words = [f"hydra/launcher={preset}", f"outputs={tmp_path}", *overrides]
        return queue_of(launcher_of(compose_figure("rank-fig8", words).whole, carry_out), tmp_path)

    return build


def script(queue: Queue, *jobs: Job) -> str:
    """What sbatch is given for the task that these jobs make."""
    ((needs, _),) = costs.packed(list(jobs), queue.wishes).items()
    executor = queue._executor(queue._asking(needs, list(jobs)))
    return executor._executor._make_submission_file_text("command", "0")


def test_the_preset_for_cpus_asks_for_what_the_run_needs(queue, tmp_path):
    text = script(queue("slurm-cpu"), job(tmp_path, 5, threads=2))
    for line in ("cpus-per-task=2", "mem=2GB", "time=240", "requeue", "signal=USR2@120"):
        assert f"#SBATCH --{line}\n" in text
    assert "srun" in text and "--cpus-per-task=2 command" in text
    assert "gpus" not in text


def test_the_preset_for_gpus_asks_for_one(queue, tmp_path):
    text = script(queue("slurm-gpu", "hydra.launcher.partition=gpu"), job(tmp_path, 5))
    for line in ("gpus-per-node=1", "mem=8GB", "partition=gpu", "cpus-per-task=1"):
        assert f"#SBATCH --{line}\n" in text


def test_what_is_typed_wins(queue, tmp_path):
    typed = ["mem_gb=3", "timeout_min=7", "cpus_per_task=5"]
    words = [f"hydra.launcher.{each}" for each in typed]
    text = script(queue("slurm-cpu", *words), job(tmp_path, 5))
    for line in ("mem=3GB", "time=7", "cpus-per-task=5"):
        assert f"#SBATCH --{line}\n" in text
    text = script(queue("slurm-cpu", "hydra.launcher.mem_per_cpu=500M"), job(tmp_path, 5))
    assert "mem-per-cpu=500M" in text and "mem=" not in text.replace("mem-per-cpu=", "")


def test_all_cores_must_be_counted(queue, tmp_path):
    with pytest.raises(InputError, match="threads=null takes all the CPUs"):
        script(queue("slurm-cpu"), job(tmp_path, 5, threads=None))


def test_short_runs_share_a_task_and_long_ones_have_their_own(tmp_path, monkeypatch):
    jobs = [job(tmp_path, width) for width in (2, 3, 4, 5, 6, 7)]
    known = (math.inf, 9000, 200, 90, 50, 1)
    kept = {str(job.run): {"seconds": each} for job, each in zip(jobs, known, strict=True)}
    monkeypatch.setattr(costs, "_of_reference", lambda: kept)
    assert costs.packed(jobs, {}) == {
        Needs(240, 8): [[jobs[0]]],  # not known
        Needs(1440, 8): [[jobs[1]]],
        Needs(15, 8): [[jobs[2], jobs[3]], [jobs[4], jobs[5]]],
    }
    alone = costs.packed(jobs, {"timeout_min": 7}, 0)
    assert alone == {Needs(7, 8): [[each] for each in jobs]}


def test_runs_at_scale_smoke_are_short(tmp_path):
    jobs = [job(tmp_path, width, scale="smoke") for width in range(2, 9)]
    assert costs.packed(jobs, {}) == {Needs(15, 8): [jobs]}


def test_memory_is_asked_for_by_what_was_measured(tmp_path, monkeypatch):
    jobs = [job(tmp_path, width) for width in (2, 3, 4)]
    peaks = {str(jobs[0].run): 2**28, str(jobs[1].run): 3.5 * 2**30}
    kept = {run: {"seconds": 1.0, "peak_memory_bytes": peak} for run, peak in peaks.items()}
    monkeypatch.setattr(costs, "_of_reference", lambda: kept)

    def asked(**wishes) -> list[int]:
        return [next(iter(costs.packed([each], wishes))).gibibytes for each in jobs]

    assert (
        asked() == [1, 8, 8] and asked(gpus_per_node=1) == [4, 8, 8] and asked(mem_gb=3) == [3] * 3
    )


@pytest.mark.parametrize("error", [SystemExit(-1), submitit.core.utils.UncompletedJobError("over")])
def test_a_task_whose_end_is_announced_interrupts_its_run_first(tmp_path, monkeypatch, error):
    """Submitit queues a task again at this signal, and ends it by an error of its own."""

    def ending(*signalled):
        raise error

    before = signal.signal(signal.SIGUSR2, ending)
    one = job(tmp_path, 5, device="cpu", checkpoint_seconds=0)
    write = Checkpoint.write
    monkeypatch.setattr(
        Checkpoint, "write", lambda *given: (write(*given), signal.raise_signal(signal.SIGUSR2))
    )
    try:
        with pytest.raises(type(error)):
            Work([one], on_gpu=False)()
        assert signal.getsignal(signal.SIGUSR2) is ending
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert one.run.status() == "interrupted" and not (one.run.folder / "error.txt").exists()
    assert (one.run.folder / "checkpoint.safetensors").exists()


def note(queue: Queue, number: str, tasks: list[list[str]], forced: bool = False) -> Path:
    queue.records.mkdir(parents=True, exist_ok=True)
    path = queue.records / f"{number}.json"
    path.write_text(json.dumps({"forced": forced, "tasks": tasks}))
    return path


def test_a_later_command_finds_what_lives_in_the_queue(queue, monkeypatch):
    some = queue("slurm-cpu")
    array = note(some, "7", [["a", "b"], ["c"]])
    ended, gone = note(some, "8", [["d"]]), note(some, "9", [["e"]])
    damaged = some.records / "10.json"
    damaged.write_text("{")
    listing = "7_0|PENDING|Priority\n7_1|FAILED|NonZeroExitCode\n8|COMPLETED|None\n10|RUNNING|None"
    monkeypatch.setattr(slurm, "_ask", lambda *command: listing if command[0] == "squeue" else "")
    found = some.living(forced=False)
    assert set(found) == {"a", "b"}
    assert found["a"].id == "7_0" and found["a"].labels == ("a", "b") and found["a"].tasks == 2
    assert some.living(forced=True) == {}
    assert [path.exists() for path in (array, ended, gone, damaged)] == [True, False, False, False]


def test_a_queue_that_does_not_answer_takes_nothing(queue, monkeypatch):
    some = queue("slurm-cpu")
    note(some, "7", [["a"]])
    monkeypatch.setattr(slurm, "QUERY_SECONDS", 5)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="slurm-cpu cannot start jobs: squeue"):
        some.living(forced=False)


def test_a_task_computes_its_runs_and_hands_back_their_errors(tmp_path, monkeypatch):
    jobs = [job(tmp_path, 2), job(tmp_path, 3)]
    broken = jobs[1].run.folder
    broken.mkdir(parents=True)
    (broken / "config.yaml").mkdir()
    monkeypatch.setenv(COMMAND, "python -m runner -m seed=1,2")
    work = pickle.loads(pickle.dumps(Work(jobs, on_gpu=False)))
    assert {each.settings.device for each in work.jobs} == {"cpu"}
    assert not any(each.settings.wait for each in work.jobs) and jobs[0].settings.wait
    assert {each.settings.device for each in Work(jobs, on_gpu=True).jobs} == {"auto"}
    monkeypatch.setenv(COMMAND, "another")
    errors = work()
    assert errors[label(tmp_path, 2)] is None and jobs[0].run.is_complete()
    assert isinstance(errors[label(tmp_path, 3)], RunFailed)
    assert jobs[0].run.provenance()["command"] == "python -m runner -m seed=1,2"


class Listed(submitit.Job):
    """A job of submitit, with the answer that it will hand back."""

    def __init__(self, job_id: str, folder: Path, answer) -> None:
        self._job_id, self.answer = job_id, answer
        self._cancel_at_deletion = False
        paths = {"folder": folder, "stdout": folder / f"{job_id}_0_log.out"}
        self._paths = SimpleNamespace(**paths, result_pickle=folder / f"{job_id}.pkl")
        if answer is not None:
            self.paths.result_pickle.write_text("")

    def result(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class List(SlurmQueue):
    """A queue whose tasks end at once, as they are told: an answer by label, or a state."""

    ask_seconds = 0.0

    def __init__(self, outputs: Path, fates: dict[str, list]) -> None:
        self.outputs, self.fates = outputs, fates
        self.submitted: list[list[str]] = []
        self.cancelled: list[str] = []
        self.states: dict[str, Seen] = {}

    def alone(self):
        return nullcontext()

    def living(self, forced):
        return {}

    def submit(self, jobs, packed=True):
        self.submitted.append([label_of(each.run, self.outputs) for each in jobs])
        return [
            self._task(each, f"{len(self.submitted)}_{index}") for index, each in enumerate(jobs)
        ]

    def _task(self, one: Job, task: str) -> Task:
        name = label_of(one.run, self.outputs)
        fate = self.fates.get(name, ["complete"]).pop(0)
        answer = None if isinstance(fate, Seen) else {name: fate}
        if fate == "complete":
            one.run.folder.mkdir(parents=True, exist_ok=True)
            one.run.result_path.write_text('{"tables": {}}')
            answer = {name: None}
        elif isinstance(fate, Seen):
            self.states[task] = fate
        elif isinstance(fate, submitit.core.utils.FailedJobError):
            answer = fate
        return Task(Listed(task, self.outputs, answer), (name,), 3)

    def look(self, tasks):
        return {task.id: self.states[task.id] for task in tasks if task.id in self.states}

    def cancel(self, tasks):
        self.cancelled += [task.id for task in tasks]

    def how_to_cancel(self, tasks):
        return "scancel"


@pytest.fixture
def follow(tmp_path, monkeypatch):
    """Follows runs of widths 2, 3, 4 with these fates of the second; failures and the queue."""
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.01)

    def run(*fates, **changes) -> tuple[list[str], List]:
        some = List(tmp_path, {label(tmp_path, 3): [*fates, "complete"]})
        jobs = [job(tmp_path, width, **changes) for width in (2, 3, 4)]
        way = Following(some, list(map(Attempt, jobs)), jobs[0].settings)
        way.submit()
        return way.follow(), some

    return run


def test_each_run_is_collected_by_itself(follow):
    failures, queue = follow()
    assert failures == [] and len(queue.submitted) == 1


@pytest.mark.parametrize(
    ("state", "deaths"), [("FAILED", 1), ("TIMEOUT", 1), ("NODE_FAIL", 9), ("PREEMPTED", 9)]
)
def test_what_died_is_queued_again_alone(follow, state, deaths, tmp_path):
    failures, queue = follow(*[Seen(state, "why")] * deaths)
    assert failures == []
    assert queue.submitted[1:] == [[label(tmp_path, 3)]] * deaths


def test_what_dies_again_has_failed_with_state_number_and_log(follow):
    (failure,), queue = follow(*[Seen("FAILED", "signal 9")] * 2)
    assert "target_width=3" in failure and "failed: job 2_0 FAILED (signal 9); log " in failure
    assert failure.endswith("2_0_0_log.out; it died 2 times") and len(queue.submitted) == 2


def test_what_is_cancelled_stays_so(follow):
    (failure,), queue = follow(Seen("CANCELLED", "by user 7"))
    assert "failed: job 1_1 CANCELLED (by user 7); log " in failure and len(queue.submitted) == 1


def test_more_memory_is_the_users_to_give(follow):
    (failure,), queue = follow(Seen("OUT_OF_MEMORY"))
    assert "hydra.launcher.mem_gb=" in failure and len(queue.submitted) == 1


def test_what_has_left_the_queue_without_a_word_is_queued_again(follow):
    failures, queue = follow(Seen("gone"))
    assert failures == [] and len(queue.submitted) == 2


TRACE = "Job failed with trace:\n----\nsubmitit.UncompletedJobError: too many times.\n----\nlogs"


@pytest.mark.parametrize(
    ("fate", "told"),
    [
        (RunFailed("bn_only target_width=3 failed: no"), "failed: no"),
        (submitit.core.utils.FailedJobError(TRACE), "failed: job 1_1: too many times.; log "),
        (submitit.core.utils.FailedJobError("no trace"), "failed: job 1_1: no trace; log "),
        (None, "failed: job 1_1 ended without a result; log "),
    ],
)
def test_errors_of_runs_and_of_tasks_are_told(follow, fate, told):
    (failure,), _ = follow(fate)
    assert told in failure


def test_another_processes_run_is_waited_for_here(follow, monkeypatch):
    held = [True, True, False]
    monkeypatch.setattr(lock, "is_held", lambda folder: held.pop(0))
    failures, queue = follow(Busy("another's"))
    assert failures == [] and not held and len(queue.submitted) == 2


def test_without_waiting_another_processes_run_is_a_failure(follow):
    (failure,), queue = follow(Busy("another's"), wait=False)
    assert failure.endswith("failed: another's") and len(queue.submitted) == 1


def test_fail_fast_cancels_the_others(follow, monkeypatch):
    def submit(self, jobs, packed=True, real=List.submit):
        tasks = real(self, jobs, packed)
        self.states["1_9"] = Seen("RUNNING")
        return [*tasks, Task(Listed("1_9", self.outputs, None), ("other",), 4)]

    monkeypatch.setattr(List, "submit", submit)
    failures, queue = follow(RunFailed("no"), fail_fast=True)
    assert len(failures) == 1 and "1_9" in queue.cancelled


def test_an_interrupted_command_says_what_it_leaves(tmp_path, monkeypatch, caplog):
    some = List(tmp_path, {label(tmp_path, 2): [Seen("PENDING", "Resources")]})
    monkeypatch.setattr(following.log, "propagate", True)
    caplog.set_level("INFO", following.log.name)
    way = Following(some, [Attempt(job(tmp_path, 2))], Settings(outputs=str(tmp_path)))
    way.submit()

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(following.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        way.follow()
    assert "submitted job 1 (1 task, 1 run), logs " in caplog.text
    assert (
        "left in the queue: job 1: 2 of 3 tasks ended, 1 pending, waiting for Resources"
        in caplog.text
    )


def test_a_run_that_another_has_completed_meanwhile_is_not_queued(tmp_path):
    jobs = [job(tmp_path, 2)]
    run_study(jobs[0])
    some = List(tmp_path, {})
    way = Following(some, [Attempt(jobs[0])], jobs[0].settings)
    way.submit()
    assert way.follow() == [] and some.submitted == []


def test_submitting_alone_needs_a_queue_that_outlives_the_command(tmp_path):
    whole = compose_figure("rank-fig8", [f"outputs={tmp_path}", "hydra/launcher=local"]).whole
    with pytest.raises(InputError, match="needs hydra/launcher=slurm-cpu or slurm-gpu"):
        launching.submit(launcher_of(whole, carry_out), [job(tmp_path, 2)], [])


def test_no_label_names_two_runs(tmp_path):
    labels = Counter(label(tmp_path, width) for width in range(2, 20))
    assert set(labels.values()) == {1} and not any(os.path.isabs(each) for each in labels)


def test_a_queue_that_takes_no_more_leaves_the_others_going(follow, monkeypatch):
    def submit(self, jobs, packed=True, real=List.submit):
        if self.submitted:
            raise InputError("hydra/launcher=slurm-cpu cannot start jobs: no more")
        return real(self, jobs, packed)

    monkeypatch.setattr(List, "submit", submit)
    (failure,), _ = follow(Seen("FAILED"))
    assert "target_width=3" in failure and "cannot start jobs: no more" in failure


def test_what_the_scheduler_knows_no_more_is_not_taken_for_running(follow, monkeypatch):
    answers = [{"1_1": Seen("RUNNING")}]
    monkeypatch.setattr(List, "look", lambda self, tasks: answers.pop() if answers else {})
    failures, queue = follow(Seen("forgotten"))
    assert failures == [] and len(queue.submitted) == 2


def test_datasets_are_fetched_before_their_runs_are_queued(tmp_path):
    words = ["study=rank_collapse", "data=fashion_mnist", "source.url=http://127.0.0.1:9/"]
    settings, config = composed(*words, "source.packages=[]", f"data_folder={tmp_path}")
    with pytest.raises(InputError, match="cannot be fetched from http://127.0.0.1:9/"):
        tasks.fetch_data([Job({}, settings, config)])
