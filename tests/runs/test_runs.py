import json
import os
import signal
import time

import pytest
import warm
from in_process import run as run_here
from stopped import interrupted
from threadpoolctl import threadpool_info
from toys import toys

from runner.core.errors import InputError, RunFailed
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only import study as bn_only
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs.execution import execute
from runner.runs.inventory import describe
from runner.runs.jobs import Attempt, Job
from runner.runs.run import Run, load

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
    assert names == {
        "config.yaml",
        "metrics.csv",
        "curves.csv",
        "provenance.json",
        "run.log",
        "result.json",
    }
    provenance = json.loads((run.folder / "provenance.json").read_text())
    assert provenance["status"] == "complete"
    assert provenance["started"] <= provenance["ended"]
    assert provenance["seconds"] > 0 and provenance["peak_memory_bytes"] > 0
    assert 0 < provenance["cpu_seconds"] < 2 * provenance["seconds"] + 1
    assert {"commit", "dirty", "command", "versions", "device"} <= set(provenance)
    assert provenance["device_name"] and {"torch", "blas"} == set(provenance["instructions"])
    assert "target_width: 3" in (run.folder / "config.yaml").read_text()
    assert "complete: bn_only target_width=3" in (run.folder / "run.log").read_text()


def test_equal_configurations_give_equal_bytes(tmp_path):
    first, second = completed(tmp_path / "a"), completed(tmp_path / "b")
    assert tables(first) == tables(second)
    assert tables(first) != tables(completed(tmp_path / "c", seed=1))


def test_a_complete_run_is_not_run_again_unless_forced(tmp_path):
    run = completed(tmp_path)
    before = run.result_path.stat().st_mtime_ns
    execute(Run(tiny(), tmp_path), settings(tmp_path))
    assert run.result_path.stat().st_mtime_ns == before
    execute(Run(tiny(), tmp_path), settings(tmp_path, force=True))
    assert run.result_path.stat().st_mtime_ns > before


@pytest.mark.parametrize("stop_after", [1, 8])
def test_a_run_that_was_interrupted_goes_on_and_ends_with_the_same_bytes(tmp_path, stop_after):
    whole = tables(completed(tmp_path / "whole"))
    run = Run(tiny(), tmp_path / "parts")
    with interrupted(stop_after):
        execute(run, settings(tmp_path / "parts", checkpoint_seconds=0))
    assert not run.is_complete()
    assert json.loads((run.folder / "provenance.json").read_text())["status"] == "interrupted"
    assert (run.folder / "checkpoint.safetensors").exists()

    execute(run, settings(tmp_path / "parts"))
    assert tables(run) == whole
    assert "goes on" in (run.folder / "run.log").read_text()
    assert not (run.folder / "checkpoint.safetensors").exists()


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGKILL, -signal.SIGKILL, "dead"), (signal.SIGTERM, 130, "interrupted")],
)
def test_a_process_that_is_ended_is_resumed(tmp_path, number, code, said):
    """In the middle of training; the same command then ends with the same bytes."""
    changes = {"train_samples": 60_000, "target_width": 4}
    arguments = [f"{key}={value}" for key, value in {**TINY, **changes, "replicates": 2}.items()]
    command = ["-m", "runner", *arguments, "checkpoint_seconds=0"]
    command += [f"outputs={tmp_path / 'killed'}", "device=cpu"]
    run = Run(tiny(**changes), tmp_path / "killed")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = warm.Process(*command, env=environment)
    deadline = time.monotonic() + 120
    while not (run.folder / "checkpoint.safetensors").exists():
        assert process.poll() is None, process.texts()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert describe(run.folder).status == "running"
    os.kill(process.pid, number)
    assert process.wait(10) == code
    assert not run.is_complete() and describe(run.folder).status == said
    execute(run, settings(tmp_path / "killed"))
    assert "goes on" in (run.folder / "run.log").read_text()
    assert tables(run) == tables(completed(tmp_path / "whole", **changes))


def test_a_damaged_checkpoint_means_a_clean_start(tmp_path):
    whole = tables(completed(tmp_path / "whole"))
    run = Run(tiny(), tmp_path / "damaged")
    run.folder.mkdir(parents=True)
    (run.folder / "checkpoint.safetensors").write_bytes(b"not a checkpoint")
    (run.folder / "metrics.csv").write_text("left,over\n1,2\n")
    execute(run, settings(tmp_path / "damaged"))
    assert tables(run) == whole


def test_a_table_cut_in_the_middle_is_named_and_computed_again(tmp_path):
    run = completed(tmp_path)
    whole = tables(run)
    path = run.folder / "metrics.csv"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"metrics.csv is damaged"):
        run.tables()
    with pytest.raises(InputError, match=r"metrics.csv is damaged"):
        load([Run(tiny(), tmp_path)])
    execute(Run(tiny(), tmp_path), settings(tmp_path))
    assert tables(run) == whole


def test_a_failing_run_leaves_its_traceback_and_no_result(tmp_path, monkeypatch):
    def broken(config, context):
        raise ZeroDivisionError("no luck")
        yield

    run = Run(tiny(), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(bn_only, "run", broken)
        with pytest.raises(RunFailed, match="error.txt"):
            execute(run, settings(tmp_path))
    assert "ZeroDivisionError: no luck" in (run.folder / "error.txt").read_text()
    assert not run.is_complete()
    execute(run, settings(tmp_path))
    assert run.is_complete() and not (run.folder / "error.txt").exists()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InputError("no such\n  thing"), "no such thing"),
        (MemoryError(), "ran out of memory on cpu: smaller sizes take less"),
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
    assert attempt.error() == told
    os.utime(attempt.job.run.folder / "error.txt", (0, 0))
    assert attempt.error() == "", "it is of an attempt before"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit(0)", "SystemExit: 0"),
        (r"raise ValueError('a lone surrogate: \ud800')", r"a lone surrogate: \ud800"),
        ("return", "the study has yielded no row"),
    ],
)
def test_what_a_study_should_not_do_fails_its_run_alone(tmp_path, body, said):
    room = toys(tmp_path, toy=f"if config.value == 2: {body}")
    words = ("--config-dir", str(room), "-m", "study=toy", "value=1,2,3", "scale=smoke")
    done = warm.run("-m", "runner", *words, "device=cpu", cwd=tmp_path)
    assert done.returncode == 1 and "1 of 3 runs failed" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert len(list(tmp_path.glob("outputs/runs/toy/*/result.json"))) == 2
    (error,) = tmp_path.glob("outputs/runs/toy/*/error.txt")
    assert said in error.read_text()
    assert json.loads((error.parent / "provenance.json").read_text())["status"] == "failed"
    alone = (*words[:2], *words[3:4], "value=2", *words[5:])
    done = warm.run("-m", "runner", *alone, "device=cpu", cwd=tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr and said in done.stderr


def test_a_missing_run_is_named(tmp_path):
    run = completed(tmp_path)
    with pytest.raises(InputError, match=r"1 of 2 runs are missing:\n  bn_only target_width=9"):
        load([run, Run(BnOnly(target_width=9), tmp_path)])


def test_two_runs_load_as_one_table_with_their_parameters(tmp_path):
    loaded = load([completed(tmp_path), completed(tmp_path, target_width=4)])
    assert set(loaded["curves"]["target_width"]) == {3, 4}
    assert loaded["metrics"]["run"].nunique() == 2


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


def test_a_run_of_another_number_of_threads_is_reused_and_said(tmp_path, monkeypatch, capsys):
    """Threads change last digits and are no part of a run's identity."""

    def said(*words: str) -> list[str]:
        smallest = ["study=example20", "scale=smoke", "device=cpu", f"outputs={tmp_path}"]
        assert run_here([*words, *smallest], monkeypatch) == 0
        return [line for line in capsys.readouterr().err.splitlines() if "threads" in line]

    assert said("threads=2") == said("threads=2") == []
    (path,) = tmp_path.glob("runs/*/*/provenance.json")
    about = json.loads(path.read_text())
    assert about["threads"] == 2
    for words in (["threads=1"], ["-m", "threads=1"]):
        (line,) = said(*words)
        assert "was computed with threads=2, not 1, and kept" in line and "force=true" in line
    said("seed=1")
    assert said("-m", "threads=1", "seed=0,1")[0].startswith("1 of 2 runs were computed with")
    path.write_text(json.dumps(about | {"threads": 1, "first": {"threads": 3}}))
    assert "threads=3, not 1" in said("threads=1")[0], "what began it counts, too"
    path.write_text(json.dumps({**about, "threads": None}))
    assert said("threads=1") == [], "nothing is known"
    assert said("threads=1", "force=true") == said("threads=1") == []
    assert json.loads(path.read_text())["threads"] == 1
