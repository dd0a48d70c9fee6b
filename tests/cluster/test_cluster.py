"""Runs through Slurm's queue, which is pretended: by a list, or by scripts that run the tasks here.

The real one is in scripts/slurm-test.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import submitit

from runner.cli import launching
from runner.cli.composing import hydra_ready
from runner.cli.orders import compose_order
from runner.cluster import following, requests
from runner.cluster.following import Following, Work
from runner.core.errors import Busy, InputError, RunFailed
from runner.results.figure import Figure
from runner.runs import costs, lock
from runner.runs.jobs import Attempt, Job

WIDTHS = ("study=bn_only", "target_width=2,3,4", "scale=smoke")
DIES = "FAILED (NonZeroExitCode)"


class Slurm:
    """A queue whose tasks end at once, complete or in a state: fates of a width, one by one."""

    def __init__(self, **fates: list[str]) -> None:
        self.fates, self.states = fates, {}
        self.asked, self.arrays, self.cancelled = [], [], []

    def ask(self, *command: str) -> str:
        if command[0] == "scancel":
            self.cancelled += command[1:]
        return "".join(f"{task}|{state}\n" for task, state in self.states.items())

    def update_parameters(self, **given: object) -> None:
        self.asked.append({key.removeprefix("slurm_"): value for key, value in given.items()})

    def submit_array(self, works: list) -> list[SimpleNamespace]:
        jobs = [getattr(work, "jobs", []) for work in works]
        self.arrays.append([[job.config.target_width for job in each] for each in jobs])
        number = len(self.arrays)
        names = [
            f"{number}_{index}" if len(works) > 1 else f"{number}" for index in range(len(works))
        ]
        for name, each in zip(names, jobs, strict=True):
            self.states[name] = "PENDING (Dependency)" if not each else "COMPLETED (None)"
            for job in each:
                fates = self.fates.get(f"w{job.config.target_width}") or ["complete"]
                self.states[name] = state = fates.pop(0)
                if state == "complete":
                    self.states[name] = "COMPLETED (None)"
                    job.run.folder.mkdir(parents=True, exist_ok=True)
                    job.run.result_path.write_text('{"tables": {}}')
        return [SimpleNamespace(job_id=name) for name in names]


@pytest.fixture
def queued(tmp_path, monkeypatch):
    """Has a sweep over three widths queued, each run a task of its own, with further words."""
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(following, "ASK_SECONDS", 0)
    monkeypatch.setattr(requests, "PACK_SECONDS", 0)
    monkeypatch.setattr(requests, "first_peak", lambda job: 2**30)

    def build(slurm: Slurm, *words: str, preset: str = "slurm-cpu") -> Following:
        monkeypatch.setattr(following, "ask", slurm.ask)
        monkeypatch.setattr(submitit, "AutoExecutor", lambda *of, **timeouts: slurm)
        words = (*WIDTHS, f"hydra/launcher={preset}", f"outputs={tmp_path}", *words)
        with hydra_ready(words):
            order = compose_order(list(words), multirun=True)
        wanted = [Attempt(job) for job in order.jobs if job.run.is_wanted(job.settings)]
        return Following(order, wanted)

    return build


def first_job(queued) -> Job:
    return next(iter(queued(Slurm(w2=[DIES])).open.values())).job


def test_tasks_ask_for_what_their_runs_need_and_what_is_typed_wins(queued, monkeypatch):
    known = {"seconds": 1000.0, "peak_memory_bytes": 3 * 2**30}
    monkeypatch.setattr(requests, "taken", lambda run, what: known[what])
    words = [[f"hydra.launcher.{key}"] for key in ("mem_gb=3", "timeout_min=7", "mem_per_cpu=500M")]
    asked = []
    for each in ([], *words, ["threads=2"], ["hydra.launcher.cpus_per_task=5", "threads=null"]):
        queued(slurm := Slurm(w2=[DIES], w3=[DIES], w4=[DIES]), *each)
        asked.append(itemgetter("mem_gb", "timeout_min", "cpus_per_task")(slurm.asked[0]))
    assert asked == [(4, 60, 1), (3, 60, 1), (4, 7, 1), (None, 60, 1), (4, 60, 2), (4, 60, 5)]
    queued(slurm := Slurm(), preset="slurm-gpu")
    assert slurm.asked[0]["gpus_per_node"] == 1 and slurm.asked[0]["mem_gb"] == 8
    with pytest.raises(InputError, match="threads=null: say how many CPUs"):
        queued(Slurm(), "threads=null")


def test_short_runs_share_a_task_and_long_ones_have_their_own(queued, monkeypatch):
    monkeypatch.setattr(requests, "SMOKE_SECONDS", 4000)
    known = dict(zip(range(2, 8), (None, 9000, 200, 90, 50, 1), strict=True))
    job = first_job(queued)
    runs = {width: replace(job.config, target_width=width) for width in known}
    jobs = dict(zip("abcdef", (replace(job, config=run) for run in runs.values()), strict=True))
    monkeypatch.setattr(requests, "taken", lambda run, what: known[run.config.target_width])
    gibibytes = dict.fromkeys(jobs, 2)
    assert requests.packed(jobs, gibibytes, 0, 300) == {
        (240, 2, 0): [["a"]],
        (1440, 2, 0): [["b"]],
        (15, 2, 0): [["c", "d"], ["e", "f"]],
    }
    assert requests.packed(jobs, gibibytes, 7, 0) == {(7, 2, 0): [[each] for each in jobs]}
    several = requests.packed(jobs, dict.fromkeys(jobs, 0) | {"c": 4}, 0, 300)
    assert several[15, 4, 0] == [["c"]] and several[15, 0, 0] == [["d", "e", "f"]]


def test_where_no_peak_is_known_the_largest_run_is_measured(queued, tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr(costs, "MEASURED_SECONDS", 300)  # on a busy machine
    monkeypatch.setattr(requests, "first_peak", lambda job: measured.append(job) or 5 * 2**30)
    queued(slurm := Slurm())
    assert [job.config.target_width for job in measured] == [4] and slurm.asked[0]["mem_gb"] == 8
    assert 2**27 < costs.first_peak(measured[0]) < 2**31
    assert not list(tmp_path.glob("runs/*/*/config.yaml"))
    monkeypatch.setattr(costs, "complete", sys.exit)
    assert costs.first_peak(measured[0]) == 0


def test_each_run_is_collected_by_its_folder(queued, tmp_path):
    assert queued(slurm := Slurm()).follow() == [] and slurm.arrays == [[[2], [3], [4]]]
    queued(again := Slurm())
    assert again.arrays == []


@pytest.mark.parametrize(("state", "deaths"), [(DIES, 1), ("GONE", 1), ("NODE_FAIL (None)", 9)])
def test_what_died_is_queued_again_alone(queued, state, deaths):
    failures = queued(slurm := Slurm(w3=[state] * deaths)).follow()
    assert failures == [] and slurm.arrays[1:] == [[[3]]] * deaths


@pytest.mark.parametrize(
    ("states", "tries"), [([DIES] * 2, 2), (["CANCELLED (None)"], 1), (["OUT_OF_MEMORY (None)"], 1)]
)
def test_what_is_not_tried_again_has_failed_with_state_number_and_log(queued, states, tries):
    (failure,) = queued(slurm := Slurm(w3=list(states))).follow()
    task = "2" if tries == 2 else "1_1"
    said = f"job {task} {states[-1].removesuffix(' (None)')}; log "
    assert "target_width=3" in failure and said in failure and len(slurm.arrays) == tries
    assert failure.endswith(f"/submitit/{task}/{task}_0_log.out")


def test_a_run_that_fails_by_itself_says_why_and_is_not_tried_again(queued):
    way = queued(slurm := Slurm(w3=["RUNNING (None)"]))
    run = next(each.job.run for label, each in way.open.items() if "width=3" in label)
    run.folder.mkdir(parents=True)
    (run.folder / "error.txt").write_text("Traceback\nValueError: no\n")
    (run.folder / "provenance.json").write_text('{"status": "failed"}')
    (failure,) = way.follow()
    assert "failed: ValueError: no; job 1_1 RUNNING; log " in failure and len(slurm.arrays) == 1


def test_a_run_of_a_process_outside_the_queue_is_waited_for(queued, monkeypatch):
    held = [True, True, True, False, False]
    monkeypatch.setattr(lock, "is_held", lambda folder: held.pop(0))
    assert queued(slurm := Slurm(w3=["COMPLETED (None)"])).follow() == []
    assert not held and slurm.arrays == [[[2], [3], [4]], [[3]]]


def test_fail_fast_cancels_the_others(queued):
    way = queued(slurm := Slurm(w2=["CANCELLED (None)"], w3=["RUNNING (None)"]), "fail_fast=true")
    assert len(way.follow()) == 1 and slurm.cancelled == ["1_1"]


def test_a_later_command_finds_what_lives_in_the_queue(queued, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(following.log, "propagate", True)
    caplog.set_level("INFO", following.log.name)
    way = queued(slurm := Slurm(w2=["PENDING (Resources)"], w3=["RUNNING (None)"]))
    assert "submitted job 1 (tasks: 3, runs: 3), logs " in caplog.text
    monkeypatch.setattr(following.time, "sleep", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        way.follow()
    assert "left in the queue" in caplog.text and "1 PENDING (Resources)" in caplog.text
    notes = tmp_path / "submitit" / "queued"
    (notes / "9.json").write_text("{")
    (notes / "8.json").write_text(json.dumps({"tasks": [["runs/bn_only/another"]]}))
    queued(slurm)
    assert "found in the queue: job 1 (runs: 2)" in caplog.text and len(slurm.arrays) == 1
    assert [path.name for path in notes.glob("*.json")] == ["1.json"]


def test_a_scheduler_that_does_not_answer_ends_a_command_at_its_begin_alone(queued, monkeypatch):
    def silent(*command: str) -> str:
        monkeypatch.setattr(following, "ask", slurm.ask)
        raise InputError("Slurm does not answer")

    way = queued(slurm := Slurm(w3=[DIES]))
    monkeypatch.setattr(following, "ask", silent)
    assert way.follow() == [] and slurm.arrays[1:] == [[[3]]]
    monkeypatch.undo()
    with pytest.raises(InputError, match="no-such-command"):
        following.ask("no-such-command")


def test_what_is_refused_when_it_is_queued_again_is_queued_later(queued):
    way, submit = queued(slurm := Slurm(w3=[DIES])), slurm.submit_array

    def refuse(works: list) -> None:
        slurm.submit_array = submit
        raise OSError("Slurm is restarted")

    slurm.submit_array = refuse
    assert way.follow() == [] and slurm.arrays[1:] == [[[3]]]


def test_a_refusal_says_what_would_be_right(queued):
    slurm = Slurm()
    slurm.states, slurm.submit_array = {"cpu* up to infinite": ""}, lambda works: 1 / 0
    with pytest.raises(InputError, match="cannot start jobs: division.*\n.*is one of cpu. up to"):
        queued(slurm)


def test_the_drawing_waits_behind_the_runs_and_is_queued_once(queued, tmp_path):
    way = queued(slurm := Slurm(w2=["RUNNING (None)"]))
    runs = tuple(attempt.job.run for attempt in way.open.values())
    figure = Figure("fig4", "smoke", (), runs, tmp_path)
    way.draw_afterwards([figure])
    way.draw_afterwards([figure])
    assert len(slurm.arrays) == 2 and slurm.asked[1]["dependency"] == "afterany:1"


def test_a_task_computes_its_runs_whatever_becomes_of_others(queued, monkeypatch):
    errors, done = [InputError, Busy, RunFailed, KeyboardInterrupt, InputError], []

    def compute(job: Job) -> None:
        done.append(job)
        raise errors[len(done) - 1]

    job, again = first_job(queued), []
    monkeypatch.setattr(signal, "signal", lambda number, handler: lambda *of: again.append(number))
    monkeypatch.setattr(following, "complete", compute)
    with pytest.raises(KeyboardInterrupt):  # of Slurm's warning, which submitit answers
        Work([job] * 5)()
    assert done == [job] * 4 and again == [signal.SIGUSR2]


def test_datasets_are_fetched_before_their_runs_are_queued(tmp_path):
    words = ["study=rank_collapse", "data=fashion_mnist", "source.url=http://127.0.0.1:9/"]
    words += ["source.packages=[]", f"data_folder={tmp_path}", "hydra/launcher=slurm-cpu"]
    with hydra_ready(words), pytest.raises(InputError, match="cannot be fetched from http://127"):
        launching.launch(compose_order([*words, f"outputs={tmp_path}"]))


def test_a_figure_goes_through_the_commands_of_slurm(tmp_path):
    pretended = Path(__file__).parents[1] / "support" / "pretended_slurm"
    place = {"PATH": f"{pretended}:{os.environ['PATH']}", "PRETENDED_SLURM": str(tmp_path)}
    words = ["figure=rank-lemma3", "scale=smoke", "hydra/launcher=slurm-cpu"]
    command = [sys.executable, "-m", "runner", *words, f"outputs={tmp_path / 'outputs'}"]
    done = subprocess.run(command, env=os.environ | place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "submitted job 1 (tasks: " in done.stderr and "rank-lemma3.png" in done.stdout
    script = next(tmp_path.glob("outputs/submitit/1*/*_submission.sh")).read_text()
    lines = ("mem=2GB", "time=15", "cpus-per-task=1", "signal=USR2@120", "requeue")
    assert all(f"#SBATCH --{line}\n" in script for line in lines) and "srun" in script
