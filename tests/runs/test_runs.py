import errno
import json
import os
import signal
import time

import pytest
import warm
from threadpoolctl import threadpool_info
from toys import toys

from runner.core.errors import InputError, RunFailed
from runner.core.settings import Settings
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.papers.norm_tuning.bn_only import study as bn_only
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import execution
from runner.runs.execution import execute
from runner.runs.inventory import describe
from runner.runs.jobs import Attempt, Job
from runner.runs.run import Run, kept_notes, load

TINY = {"target_width": 3, "train_samples": 6400, "test_samples": 500, "batch_size": 32}


def tiny(**changes) -> BnOnly:
    return BnOnly(**{**TINY, "replicates": 2, **changes})


def settings(outputs, **changes) -> Settings:
    return Settings(outputs=str(outputs), device="cpu", **changes)


def tables(run: Run) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}


def completed(outputs, **changes) -> Run:
    run = Run(tiny(**changes), outputs)
    execute(run, settings(outputs))
    return run


def test_a_complete_run_holds_its_evidence(tmp_path):
    run = completed(tmp_path)
    names = {path.name for path in run.folder.iterdir()}
    files = "config.yaml metrics.csv curves.csv provenance.json run.log result.json sums.json"
    assert names == set(files.split())
    provenance = json.loads((run.folder / "provenance.json").read_text())
    assert provenance["status"] == "complete"
    assert provenance["started"] <= provenance["ended"]
    assert provenance["seconds"] > 0 and provenance["peak_memory_bytes"] > 0
    assert 0 < provenance["cpu_seconds"] < 2 * provenance["seconds"] + 1
    assert {"commit", "dirty", "command", "versions", "device"} <= set(provenance)
    assert provenance["device_name"] and {"torch", "blas"} == set(provenance["instructions"])
    assert "target_width: 3" in (run.folder / "config.yaml").read_text()
    assert "complete: bn_only target_width=3" in (run.folder / "run.log").read_text()


def test_a_process_that_is_terminated_is_resumed(tmp_path):
    """In the middle of training; the same command then ends with the same bytes."""
    changes = {"train_samples": 60_000, "target_width": 4}
    arguments = [f"{key}={value}" for key, value in {**TINY, **changes, "replicates": 2}.items()]
    command = ["-m", "runner", *arguments, "checkpoint_seconds=0"]
    command += [f"outputs={tmp_path / 'killed'}", "device=cpu"]
    run = Run(tiny(**changes), tmp_path / "killed")
    process = warm.Process(*command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 120
    while not (run.folder / "checkpoint.safetensors").exists():
        assert process.poll() is None, process.texts()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert describe(run.folder).status == "running"
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(10) == 130
    assert not run.is_complete() and describe(run.folder).status == "interrupted"
    execute(run, settings(tmp_path / "killed"))
    assert "goes on" in (run.folder / "run.log").read_text()
    assert tables(run) == tables(completed(tmp_path / "whole", **changes))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InputError("no such\n  thing"), "no such thing"),
        (MemoryError(), "ran out of memory on cpu: choose smaller sizes"),
        (ZeroDivisionError("no luck"), "ZeroDivisionError: no luck"),
    ],
)
def test_an_attempt_tells_the_error_of_its_run_alone(tmp_path, monkeypatch, error, told):
    def broken(config, context):
        raise error
        yield

    monkeypatch.setattr(bn_only, "run", broken)
    attempt = Attempt(Job(tiny(), settings(tmp_path)))
    with pytest.raises((InputError, RunFailed)):
        execute(attempt.job.run, settings(tmp_path))
    run = attempt.job.run
    assert attempt.error().startswith(told) and not run.is_complete()
    assert "Traceback (most recent call last)" in (run.folder / "error.txt").read_text()
    assert (run.folder / "run.log").read_text().endswith(f" failed: {attempt.error()}\n")
    os.utime(run.folder / "error.txt", (0, 0))
    assert attempt.error() == "", "it is of an attempt before"
    monkeypatch.undo()
    execute(run, settings(tmp_path))
    assert run.is_complete() and not (run.folder / "error.txt").exists()


FULL = OSError(errno.ENOSPC, "No space left on device")
REFUSED = PermissionError(errno.EACCES, "Permission denied")


def stop_runs(monkeypatch, error, problem):
    """Let runs end with an error, after which writing a file raises `problem`, if it is given."""

    def broken(config, context):
        if problem:
            monkeypatch.setattr(execution, "write_atomically", refuse)
        raise error
        yield

    def refuse(path, content):
        raise problem

    monkeypatch.setattr(bn_only, "run", broken)


@pytest.mark.parametrize(
    ("error", "problem", "told"),
    [
        (ValueError("no luck"), None, "traceback: {folder}/error.txt"),
        (
            ValueError("no luck"),
            REFUSED,
            "{folder}/error.txt cannot be written (Permission denied)",
        ),
        (ValueError("no luck"), FULL, "the disk of {outputs} is full: free space, and give the"),
        (FULL, FULL, "the disk of {outputs} is full: free space, and give the command again"),
        (
            RuntimeError(f"I/O error: {FULL.strerror} (os error 28)"),
            None,
            "the disk of {outputs} is",
        ),
    ],
)
def test_a_traceback_is_named_only_if_it_was_written(tmp_path, monkeypatch, error, problem, told):
    run = Run(tiny(), tmp_path)
    stop_runs(monkeypatch, error, problem)
    with pytest.raises(RunFailed) as raised:
        execute(run, settings(tmp_path))
    first, second = str(raised.value).splitlines()
    assert f" failed: {type(error).__name__}: {error} (test_runs.py, line " in first
    assert second.strip().startswith(told.format(folder=run.folder, outputs=tmp_path))
    info = describe(run.folder)
    assert info.status == "failed"
    assert info.failure == (
        "unknown: error.txt could not be written" if problem else first.partition(" failed: ")[2]
    )
    monkeypatch.undo()
    execute(run, settings(tmp_path))
    assert describe(run.folder).status == "complete" and not (run.folder / "error.txt").exists()


def test_an_interruption_on_a_full_disk_is_an_interruption(tmp_path, monkeypatch):
    run = Run(tiny(), tmp_path)
    stop_runs(monkeypatch, KeyboardInterrupt(), FULL)
    with pytest.raises(KeyboardInterrupt):
        execute(run, settings(tmp_path))
    assert (run.folder / "run.log").read_text().endswith(" interrupted\n")


def test_what_a_study_should_not_do_fails_its_run_alone(tmp_path):
    room = toys(
        tmp_path,
        leaves="if config.value == 2: sys.exit(0)",
        raises=r"if config.value == 2: raise ValueError('a lone surrogate: \ud800')",
        returns="if config.value == 2: return",
    )
    words = ("--config-dir", str(room), "-m", "study=leaves,raises,returns", "value=1,2,3")
    done = warm.run("-m", "runner", *words, "scale=smoke", "device=cpu", cwd=tmp_path)
    assert done.returncode == 1 and "3 of 9 runs failed" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert len(list(tmp_path.glob("outputs/runs/*/*/result.json"))) == 6
    for said in ("SystemExit: 0", r"a lone surrogate: \ud800", "the study has yielded no row"):
        assert said in done.stderr


def test_runs_load_as_one_table_with_their_parameters_and_a_missing_one_is_named(tmp_path):
    runs = [completed(tmp_path), completed(tmp_path, target_width=4)]
    loaded = load(runs)
    assert set(loaded["curves"]["target_width"]) == {3, 4}
    assert loaded["metrics"]["run"].nunique() == 2
    with pytest.raises(InputError, match=r"1 of 3 runs are missing:\n  bn_only target_width=9"):
        load([*runs, Run(BnOnly(target_width=9), tmp_path)])


def test_an_output_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be used"):
        execute(Run(tiny(), tmp_path / "file"), settings(tmp_path / "file"))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_holds_for_numpys_products_too(tmp_path, monkeypatch, threads):
    """Their library counts its threads apart from torch's."""
    seen = []
    compute = bn_only.run

    def run(config, context):
        seen.extend(threadpool_info())
        yield from compute(config, context)

    monkeypatch.setattr(bn_only, "run", run)
    execute(Run(tiny(), tmp_path), settings(tmp_path, threads=threads))
    counts = {each["num_threads"] for each in seen if each["user_api"] == "blas"}
    assert counts and max(counts) <= threads


def test_a_run_of_another_number_of_threads_is_reused_and_said(tmp_path):
    """Threads change last digits and are no part of a run's identity."""
    runs = [Run(Example20(depths=[4], grid=grid), tmp_path) for grid in (3, 4)]
    for run, threads in zip(runs, (2, 1), strict=True):
        execute(run, settings(tmp_path, threads=threads))
    assert kept_notes(runs[:1], settings(tmp_path, threads=2)) == []
    one = settings(tmp_path, threads=1)
    (note,) = kept_notes(runs[:1], one)
    assert "was computed with threads=2, not 1, and kept" in note and "force=true" in note
    assert kept_notes(runs, one)[0].startswith("1 of 2 runs were computed with threads=2")
    execute(runs[0], settings(tmp_path, threads=1, force=True))
    assert kept_notes(runs, one) == [] and runs[0].provenance()["threads"] == 1
