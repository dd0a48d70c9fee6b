"""One line for the runs of a sweep: how many have ended, how long the rest takes, what runs."""

import logging
import os
import re
import time

import pytest
import warm
from in_process import job_of
from repository import REPOSITORY

from runner.compose import sweep_progress
from runner.compose.sweep_progress import Watch
from runner.core import progress
from runner.core.settings import Settings
from runner.papers.bottleneck_structure.example20.config import Example20
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


def test_the_line_counts_what_ended_and_names_what_runs_by_what_differs(attempts):
    watch = Watch(attempts)
    assert watch.text() == "0 of 4 runs"
    for attempt, state in zip(attempts, ("complete", "failed", "running", "waits"), strict=True):
        attempt.state = state
    watch.look()
    assert watch.text() == "1 of 4 runs, 1 failed; running target_width=4"
    watch.close()


def test_the_time_left_is_by_the_expected_seconds_of_the_runs(attempts, monkeypatch):
    expected = dict(zip((2, 3, 4, 5), (600.0, 300.0, 200.0, 100.0), strict=True))
    monkeypatch.setattr(
        sweep_progress, "expected_seconds", lambda run: expected[run.config.target_width]
    )
    watch = Watch(attempts)
    attempts[0].state = attempts[1].state = "complete"
    attempts[2].state = "running"
    watch.look()
    watch.start_t -= 300  # 900 of 1200 expected seconds have taken 300
    assert watch.text() == "2 of 4 runs, about 100 s left; running target_width=4"
    watch.close()


def test_runs_of_several_studies_are_named_by_their_study(tmp_path):
    configs = [BnOnly(target_width=2), BnOnly(target_width=3), Example20()]
    names = sweep_progress.titles(configs)
    assert names[0].startswith("study=bn_only,") and "target_width=2" in names[0]
    assert names[2].startswith("study=example20") and "target_width" not in names[2]
    assert sweep_progress.titles([configs[0]]) == [""]


def test_the_runs_themselves_are_silent_meanwhile(attempts, monkeypatch, caplog):
    monkeypatch.setattr(progress, "SECONDS_TO_FIRST_LINE", 0.05)
    caplog.set_level(logging.INFO, sweep_progress.progress.OF_ALL)
    monkeypatch.setattr(logging.getLogger("runner"), "propagate", True)
    with Watch(attempts):
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
