"""One line for the runs of a sweep: how many have ended, how long the rest takes, what runs."""

import logging
import math
import os
import re
import time
from types import SimpleNamespace

import pytest
import warm
from in_process import job_of
from repository import REPOSITORY

from runner.cli import watching
from runner.cli.watching import Watch
from runner.core import progress
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs.costs import announcement
from runner.runs.jobs import Attempt, Job

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
SIZES = ("train_samples=2000", "test_samples=500", "replicates=3", "scale=smoke", "threads=1")


class FakeAttempt(Attempt):
    """An attempt at a run that is as far as it is told."""

    def __init__(self, outputs, width: int) -> None:
        self.job = job(outputs, BnOnly(seed=1, target_width=width))
        self.state = "waits"
        self.job.run.status = lambda: self.state

    def is_done(self) -> bool:
        return self.state == "complete"

    def error(self) -> str:
        return "failed" if self.state == "failed" else ""


def job(outputs, config, device="cpu"):
    return Job(config, Settings(outputs=str(outputs), device=device))


@pytest.fixture
def attempts(tmp_path):
    return [FakeAttempt(tmp_path, width) for width in (2, 3, 4, 5)]


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = SimpleNamespace(time=100.0)
    monkeypatch.setattr(time, "monotonic", lambda: now.time)
    return now


def test_the_line_counts_what_ended_and_names_what_runs_by_what_differs(attempts):
    watch = Watch(attempts, [math.inf] * 4, abreast=2)
    assert watch.text() == "0 of 4 runs"
    for attempt, state in zip(attempts, ("complete", "failed", "running", "waits"), strict=True):
        attempt.state = state
    run = attempts[2].job.run
    run.folder.mkdir(parents=True)
    (run.folder / "run.log").write_text(
        "2026-01-01 10:00:00,000 starts: bn_only on cpu\n"
        "2026-01-01 10:00:01,000 training: 3 of 9 steps, about 5 s left, loss 0.25\n"
    )
    watch.look()
    now = "running target_width=4 (training: 3 of 9 steps, about 5 s left, loss 0.25)"
    assert watch.text() == f"2 of 4 runs, 1 failed; {now}"
    with (run.folder / "run.log").open("a") as log:
        log.write("2026-01-01 10:00:02,000 checkpoint: bn_only\n")
    assert watch.text() == "2 of 4 runs, 1 failed; running target_width=4"


def test_the_time_left_is_the_references_then_that_of_the_runs_so_far(attempts, clock):
    watch = Watch(attempts, [600.0, 300.0, 200.0, 100.0], abreast=2)
    assert watch.text() == "0 of 4 runs, about 10 min left"
    attempts[0].state = attempts[1].state = "running"
    clock.time += 10  # until the processes have started
    watch.look()
    assert watch.text().startswith("0 of 4 runs, about 9.8 min left")
    attempts[0].state, attempts[1].state = "complete", "complete"
    attempts[2].state = "running"
    clock.time += 300  # twice as fast: 1000 of 1200 seconds in 300
    watch.look()
    assert watch.text().startswith("2 of 4 runs, about 60 s left; running target_width=4")


def test_unknown_times_are_told_by_the_runs_alone(attempts, clock):
    watch = Watch(attempts, [600.0, math.inf, 200.0, 100.0], abreast=2)
    attempts[0].state = "running"
    watch.look()
    assert watch.text() == "0 of 4 runs; running target_width=2"
    attempts[0].state = attempts[1].state = "complete"
    clock.time += 90
    watch.look()
    assert watch.text() == "2 of 4 runs, about 90 s left"


def test_the_runs_themselves_are_silent_meanwhile(attempts, monkeypatch, caplog):
    monkeypatch.setattr(progress, "_bars", False)
    monkeypatch.setattr(progress, "SECONDS_TO_FIRST_LINE", 0.05)
    caplog.set_level(logging.INFO, watching.progress.OF_ALL)
    monkeypatch.setattr(logging.getLogger("runner"), "propagate", True)
    with Watch(attempts, [math.inf] * 4, abreast=2):
        assert not progress.is_shown(logging.makeLogRecord({"name": progress.log.name}))
        time.sleep(0.3)
        for attempt in attempts:
            attempt.state = "complete"
    assert progress.is_shown(logging.makeLogRecord({"name": progress.log.name}))
    assert caplog.messages[0] == "0 of 4 runs" and caplog.messages[-1] == "4 of 4 runs in 1 s"


def sweep(outputs, *words: str) -> str:
    """What a sweep on two processes says while it computes."""
    launcher = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "device=cpu")
    done = warm.run("-m", "runner", "-m", *SIZES, *words, *launcher, f"outputs={outputs}",
                    env=ENVIRONMENT)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_two_workers_speak_with_one_voice(tmp_path):
    said = sweep(tmp_path, "target_width=2,3")
    assert said.startswith("2 runs, 0 of them complete\n")
    assert re.search(r"^2 of 2 runs in \d+ s$", said, re.MULTILINE)
    assert "starts:" not in said and "complete: " not in said
    logs = [path.read_text() for path in tmp_path.glob("runs/bn_only/*/run.log")]
    assert len(logs) == 2 and all("starts:" in log and "complete: " in log for log in logs)


def test_a_single_run_speaks_for_itself(tmp_path):
    said = sweep(tmp_path, "target_width=2")
    assert said.count("starts:") == said.count("complete: ") == 1 and "1 of 1" not in said


def test_what_the_reference_has_computed_has_a_cost_and_nothing_else(tmp_path, monkeypatch):
    known = job_of("figure=rank-fig3b", f"outputs={tmp_path}", "device=cpu")
    assert announcement([known], abreast=2) == "about 1 s (from the reference's times)"
    assert announcement([known, job(tmp_path, BnOnly(seed=77))], abreast=2) == ""
    assert announcement([job(tmp_path, known.config, "cuda")], abreast=1) == ""
    assert announcement([], abreast=1) == ""
    monkeypatch.setattr("runner.runs.costs.os.cpu_count", lambda: 2)
    kept = {str(known.run): {"seconds": 200.0}}
    monkeypatch.setattr("runner.runs.costs.of_reference", lambda: kept)
    said = announcement([known] * 6, abreast=4)
    assert said == "about 10 min on 2 cores (from the reference's times)"
