"""One line for the runs of a sweep: how many have ended, and how long the rest takes."""

import logging
import os
import re
import time

import pytest
import warm
from in_process import job_of
from repository import REPOSITORY

from runner.compose import sweep_progress
from runner.compose.sweep_progress import SweepProgress
from runner.core import progress
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs.costs import announcement
from runner.runs.jobs import Attempt, Job

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
SIZES = ("train_samples=2000", "test_samples=500", "replicates=3", "scale=smoke", "threads=1")
EXPECTED = {2: 600.0, 3: 300.0, 4: 200.0, 5: 100.0}
"""Seconds of the runs, by width."""


class FakeAttempt(Attempt):
    """An attempt with a state that the test sets."""

    def __init__(self, outputs, width: int) -> None:
        self.job = job(outputs, BnOnly(seed=1, target_width=width))
        self.state = "waits"

    def is_done(self) -> bool:
        return self.state == "complete"

    def error(self) -> str:
        return "failed" if self.state == "failed" else ""


def job(outputs, config, device="cpu"):
    return Job(config, Settings(outputs=str(outputs), device=device))


@pytest.fixture
def attempts(tmp_path):
    return [FakeAttempt(tmp_path, width) for width in EXPECTED]


def test_the_line_counts_ended_runs_and_weighs_them_by_their_seconds(attempts, monkeypatch):
    monkeypatch.setattr(
        sweep_progress, "expected_seconds", lambda run: EXPECTED[run.config.target_width]
    )
    bar = SweepProgress(attempts)
    assert bar.text() == "0 of 4 runs"
    attempts[0].state, attempts[1].state = "complete", "failed"
    bar.count_ended()
    bar.start_t -= 300  # 900 of 1200 expected seconds have taken 300
    assert bar.text() == "1 of 4 runs, 1 failed, about 100 s left"
    bar.close()


def test_single_runs_are_silent_meanwhile(attempts, monkeypatch, caplog):
    monkeypatch.setattr(progress, "SECONDS_TO_FIRST_LINE", 0.05)
    caplog.set_level(logging.INFO, progress.SWEEP_LOG)
    monkeypatch.setattr(logging.getLogger("runner"), "propagate", True)
    record = logging.makeLogRecord({"name": progress.log.name})
    with SweepProgress(attempts) as bar, progress.single_runs_silent():
        assert not progress.is_shown(record)
        time.sleep(0.1)
        bar.count_ended()
        for attempt in attempts:
            attempt.state = "complete"
    assert progress.is_shown(record)
    assert caplog.messages[0] == "0 of 4 runs" and caplog.messages[-1] == "4 of 4 runs in 1 s"


def test_a_single_run_writes_its_own_lines_in_a_pool_too(tmp_path):
    """Two runs have one line: `test_a_failing_run_of_a_pool_does_not_stop_the_other`."""
    pool = ("target_width=2", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "device=cpu")
    done = warm.run("-m", "runner", "-m", *SIZES, *pool, f"outputs={tmp_path}", env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("starts:") + done.stderr.count("complete: ") == 2
    assert not re.search(r"\d of \d runs? in", done.stderr)
    (log,) = tmp_path.glob("runs/bn_only/*/run.log")
    assert "starts:" in log.read_text() and "complete: " in log.read_text()


def test_runs_of_the_reference_and_similar_ones_have_an_announced_cost(tmp_path, monkeypatch):
    known = job_of("figure=rank-fig3b", f"outputs={tmp_path}", "device=cpu")
    assert announcement([known], abreast=2) == "a few seconds (from the reference's times)"
    others = announcement([known, job(tmp_path, BnOnly(seed=77))], abreast=2)
    assert others.endswith("(from times of similar runs in the reference)")
    assert announcement([job(tmp_path, known.config, "cuda")], abreast=1) == ""
    assert announcement([], abreast=1) == ""
    monkeypatch.setattr("runner.runs.costs.os.cpu_count", lambda: 2)
    kept = {known.run.name: {"seconds": 200.0}}
    monkeypatch.setattr("runner.runs.costs.of_reference", lambda: kept)
    shown = announcement([known] * 6, abreast=4)
    assert shown == "about 10 min on 2 cores (from the reference's times)"
