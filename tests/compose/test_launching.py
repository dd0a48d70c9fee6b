"""A sweep whatever happens to its jobs: each incomplete run once, one failure stops no other."""

import json
import logging
import os
import signal
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from omegaconf import OmegaConf
from some_runs import described

from runner.compose import launching
from runner.compose.composing import hydra_ready
from runner.compose.orders import Order, compose_order
from runner.core import progress
from runner.core.errors import Busy, InputError, RunFailed
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import costs
from runner.runs.execution import execute
from runner.runs.jobs import Job
from runner.runs.run import Run

TINY = {"train_samples": 640, "test_samples": 100, "batch_size": 32, "replicates": 2}
WIDTHS = (2, 3, 4, 5)

COMPOSED = {
    "hydra": {
        "launcher": {"_target_": "FakeLauncher", "n_jobs": 2},
        "runtime": {"choices": {"hydra/launcher": "fake"}},
    }
}


class FakeLauncher:
    """Runs jobs in this process as Hydra's launchers do.

    poison: of this width the job breaks the whole pool; error: of width 4 it ends so.
    """

    def __init__(self, poison: int | None = None, error: Exception | None = None):
        self.poison, self.error = poison, error
        self.batches: list[list[int]] = []

    def __call__(self, composed, task):
        self.jobs: list[Job] = task.args[0]
        return self

    def launch(self, overrides, initial_job_idx):
        self.batches.append([job.config.target_width for job in self.jobs])
        return [SimpleNamespace(return_value=self.outcome(job)) for job in self.jobs]

    def outcome(self, job: Job) -> Exception | None:
        if job.config.target_width == self.poison:
            job.run.folder.mkdir(parents=True, exist_ok=True)
            (job.run.folder / "provenance.json").write_text('{"status": "running"}')
            raise BrokenProcessPool("a worker died")
        if self.error is not None and job.config.target_width == 4:
            return self.error
        try:
            execute(job.run, job.settings)
        except Exception as error:
            return error


def tiny_run(outputs: Path, width: int) -> Run:
    return Run(BnOnly(**TINY, target_width=width), outputs)


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Launches a sweep over WIDTHS; returns the lines that say what failed."""

    def run(launcher: FakeLauncher, outputs: Path = tmp_path, **changes) -> list[str]:
        monkeypatch.setattr(launching, "launcher_of", launcher)
        configs = [tiny_run(outputs, width).config for width in WIDTHS]
        settings = {"outputs": str(outputs), "device": "cpu", **changes}
        jobs = [Job(config, Settings(**settings)) for config in configs]
        return launching.launch(Order(jobs, [], OmegaConf.create(COMPOSED)))

    return run


def complete(outputs: Path) -> list[int]:
    return [width for width in WIDTHS if tiny_run(outputs, width).is_complete()]


def test_a_killed_worker_costs_only_its_own_run(sweep, tmp_path):
    count, *failed = sweep(FakeLauncher(poison=3))
    assert count == "1 of 4 runs failed:"
    assert "target_width=3" in failed[0] and failed[0].endswith(launching.KILLED)
    assert complete(tmp_path) == [2, 4, 5]
    healthy = FakeLauncher()
    assert sweep(healthy) == [] and healthy.batches == [[3]]
    assert complete(tmp_path) == [2, 3, 4, 5]


def test_runs_that_died_long_ago_are_not_blamed_if_no_job_can_start(sweep, tmp_path, monkeypatch):
    for width in WIDTHS[:2]:
        path = tiny_run(tmp_path, width).folder / "provenance.json"
        path.parent.mkdir(parents=True)
        path.write_text('{"status": "running"}')
        os.utime(path, (0, 0))

    def refuse(*_, **options):
        raise ValueError("n_jobs == 0")

    monkeypatch.setattr(FakeLauncher, "launch", refuse)
    with pytest.raises(InputError, match="cannot start jobs: n_jobs == 0"):
        sweep(FakeLauncher())


def test_a_failure_leaves_the_others_and_fail_fast_stops(sweep, tmp_path):
    assert sweep(FakeLauncher(error=ValueError("no")), tmp_path / "all")[0][:1] == "1"
    assert complete(tmp_path / "all") == [2, 3, 5]
    failed = sweep(FakeLauncher(error=ValueError("no")), tmp_path / "fast", fail_fast=True)
    assert failed[0] == "1 of 4 runs failed:" and failed[1].endswith("failed: no")
    assert len(complete(tmp_path / "fast")) <= 3


def test_a_failure_that_leaves_no_file_is_counted_and_names_its_run_once(
    sweep, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(logging.getLogger("runner"), "propagate", True)
    caplog.set_level(logging.INFO, progress.SWEEP_LOG)
    told = f"{tiny_run(tmp_path, 4)} ran out of memory"
    assert sweep(FakeLauncher(error=InputError(told))) == ["1 of 4 runs failed:", told]
    assert caplog.messages[-1].startswith("3 of 4 runs, 1 failed in ")


def test_a_complete_run_is_computed_again_where_asked(sweep, tmp_path):
    """Old results are no result of an attempt whose worker was killed; other tables are allowed."""
    sweep(FakeLauncher())
    before = {w: tiny_run(tmp_path, w).result_path.stat().st_mtime_ns for w in WIDTHS}
    assert "target_width=3" in sweep(FakeLauncher(poison=3), force=True)[1]
    for width in (2, 4, 5):
        assert tiny_run(tmp_path, width).result_path.stat().st_mtime_ns > before[width]
    run = tiny_run(tmp_path, 5)
    table, provenance = run.folder / "metrics.csv", run.folder / "provenance.json"
    table.write_text(table.read_text().replace("1", "2"))
    result = run.result
    result["tables"]["metrics"] = described(table)
    run.result_path.write_text(json.dumps(result))
    provenance.write_text(json.dumps(run.provenance() | {"code": "another"}))
    assert tiny_run(tmp_path, 5).is_stale()
    assert sweep(FakeLauncher(), stale="recompute") == []
    assert not tiny_run(tmp_path, 5).is_stale()


def test_the_longest_run_is_launched_first(sweep, tmp_path, monkeypatch):
    known = {str(tiny_run(tmp_path, width)): {"seconds": width} for width in (2, 4, 5)}
    monkeypatch.setattr(costs, "of_reference", lambda: known)
    launcher = FakeLauncher()
    sweep(launcher)
    assert launcher.batches == [[3, 5, 4, 2]]


def test_a_job_that_ends_without_a_result_has_failed(sweep, monkeypatch):
    monkeypatch.setattr(FakeLauncher, "outcome", lambda self, job: None)
    count, *failed = sweep(FakeLauncher())
    assert count == "4 of 4 runs failed:"
    assert all(line.endswith("ended without a result") for line in failed)


def test_a_run_of_another_process_comes_last(sweep, tmp_path, monkeypatch):
    real = FakeLauncher.outcome

    def busy_once(launcher: FakeLauncher, job: Job) -> Exception | None:
        if job.config.target_width == 2 and not job.settings.wait:
            return Busy("another process has it")
        return real(launcher, job)

    monkeypatch.setattr(FakeLauncher, "outcome", busy_once)
    launcher = FakeLauncher()
    assert sweep(launcher) == [] and launcher.batches[1] == [2]
    assert complete(tmp_path) == [2, 3, 4, 5]


# --------------------------------------------------------------------------------- a Slurm cluster

SLURM = ("study=rank_collapse", "hydra/launcher=slurm-cpu")


def slurm_launcher(*words: str):
    with hydra_ready(words):
        return launching.launcher_of(compose_order(list(words)).composed, print)


def test_a_task_has_time_memory_and_the_cpus_of_its_run(tmp_path):
    asked = slurm_launcher(*SLURM, "threads=3", f"outputs={tmp_path}").params
    assert (asked["timeout_min"], asked["mem_gb"], asked["cpus_per_task"]) == (240, 8, 3)
    assert asked["submitit_folder"] == f"{tmp_path}/submitit/%j"
    assert asked["additional_parameters"] == {"requeue": True} and asked["max_num_timeout"] == 10
    asked = slurm_launcher(SLURM[0], "hydra/launcher=slurm-gpu", "hydra.launcher.mem_gb=99").params
    assert (asked["gpus_per_node"], asked["mem_gb"], asked["cpus_per_task"]) == (1, 99, 1)


DEAD = """\
Job 7_1 (task: 0) with path /out/submitit/7_1/7_1_0_result.pkl
has not produced any output (state: CANCELLED by 0)
No error stream produced."""


def test_a_dead_task_is_named_with_its_state_and_log(sweep, monkeypatch):
    monkeypatch.setattr(FakeLauncher, "launch", Mock(side_effect=RuntimeError(DEAD)))
    with pytest.raises(RunFailed, match="^job 7_1 ended without .*CANCELLED by 0; .*7_1_0_log.out"):
        sweep(FakeLauncher())


def test_slurms_warning_interrupts_the_run_and_submitit_queues_it_again(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    monkeypatch.setattr(launching.progress, "log_to_terminal", lambda: None)
    monkeypatch.setattr(launching, "HydraConfig", SimpleNamespace(get=lambda: HYDRA_JOB))
    monkeypatch.setattr(launching, "complete", lambda *of: os.kill(os.getpid(), signal.SIGUSR2))
    before = signal.signal(signal.SIGUSR2, lambda *of: asked.append(of[0]))
    try:
        with pytest.raises(KeyboardInterrupt):
            launching.work([Job(tiny_run(tmp_path, 2).config, Settings())], 1, OmegaConf.create())
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert asked == [signal.SIGUSR2]


HYDRA_JOB = SimpleNamespace(job=SimpleNamespace(num=0))


def test_datasets_are_fetched_before_their_runs_are_queued(tmp_path):
    pytest.importorskip("submitit")
    words = [*SLURM, "data=fashion_mnist", "source.url=http://127.0.0.1:9/", "source.packages=[]"]
    words += [f"data_folder={tmp_path}", f"outputs={tmp_path}"]
    with hydra_ready(words), pytest.raises(InputError, match="cannot be fetched from http://127"):
        launching.launch(compose_order(words))
