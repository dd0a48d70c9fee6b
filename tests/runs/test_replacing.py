"""A complete run that is computed again is kept until the new attempt is complete."""

import json
import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pytest
from some_runs import TINY, described
from stopped import interrupted

from runner.core.errors import Busy, RunFailed
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only import study as bn_only
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import inventory
from runner.runs.execution import execute
from runner.runs.inventory import describe
from runner.runs.run import Run, load

CONFIG = BnOnly(target_width=2, **TINY)
WISHES = [{"force": True}, {"stale": "recompute"}]


def settings(outputs: Path, **wishes) -> Settings:
    return Settings(outputs=str(outputs), device="cpu", **wishes)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    outputs = tmp_path_factory.mktemp("fresh")
    execute(Run(CONFIG, outputs), settings(outputs))
    return outputs


@pytest.fixture
def run(fresh, tmp_path) -> Run:
    """A complete run of other code, whose numbers are others than those of today."""
    outputs = shutil.copytree(fresh, tmp_path / "outputs")
    run = Run(CONFIG, outputs)
    result = json.loads(run.result_path.read_text())
    for name in result["tables"]:
        path = run.folder / f"{name}.csv"
        path.write_text(path.read_text().replace("sgd", "old"))
        result["tables"][name] = described(path)
    shutil.copy(run.folder / "curves.csv", run.folder / "steps.csv")
    run.result_path.write_text(json.dumps(result))
    provenance = run.folder / "provenance.json"
    provenance.write_text(json.dumps(run.provenance() | {"code": "another"}))
    (run.folder / "overview.png").write_text("of the old run")
    return run


def tables(run: Run) -> dict[str, bytes]:
    names = ("metrics", "curves")
    return {name: (run.folder / f"{name}.csv").read_bytes() for name in names}


def is_old(run: Run) -> bool:
    assert run.is_complete()
    return all(b"old" in content and b"sgd" not in content for content in tables(run).values())


@pytest.mark.parametrize("wishes", WISHES)
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_attempt_that_fails_or_is_stopped_takes_nothing(run, monkeypatch, wishes, error):
    compute = bn_only.run

    def broken(config, context):
        for number, row in enumerate(compute(config, context)):
            if number == 3:
                raise error("no luck")
            yield row

    outputs = run.folder.parents[2]
    monkeypatch.setattr(bn_only, "run", broken)
    with pytest.raises((RunFailed, KeyboardInterrupt)):
        execute(run, settings(outputs, **wishes))
    assert is_old(run) and load([run])
    said = "interrupted" if error is KeyboardInterrupt else "failed"
    assert (describe(run.folder).status, describe(run.folder).again) == ("complete", said)
    assert inventory.problem(run.folder) is None
    assert (run.again / "error.txt").exists() == (error is ZeroDivisionError)
    execute(run, settings(outputs))
    assert is_old(run), "it is complete, and is not computed again unasked"
    monkeypatch.setattr(bn_only, "run", compute)
    execute(run, settings(outputs, **wishes))
    assert not is_old(run) and describe(run.folder).again is None


@pytest.mark.parametrize("wishes", WISHES)
def test_what_is_complete_takes_the_place_of_the_old(run, fresh, wishes):
    execute(run, settings(run.folder.parents[2], **wishes))
    new = Run(CONFIG, fresh)
    assert tables(run) == tables(new) and run.is_complete() and not run.is_stale()
    assert {path.name for path in run.folder.iterdir()} - {"steps.csv"} == {
        path.name for path in new.folder.iterdir()
    }, "nothing is left of the old run, nor of the attempt"


def test_readers_see_the_old_run_meanwhile_and_writers_wait(run, monkeypatch):
    compute, seen = bn_only.run, []
    outputs = run.folder.parents[2]

    def watched(config, context):
        for number, row in enumerate(compute(config, context)):
            if number == 3:
                found = describe(run.folder)
                seen.append((is_old(run), found.status, found.again, run.status()))
                with pytest.raises(Busy):
                    execute(Run(CONFIG, outputs), settings(outputs, force=True, wait=False))
                execute(Run(CONFIG, outputs), settings(outputs, wait=False))
            yield row

    monkeypatch.setattr(bn_only, "run", watched)
    execute(run, settings(outputs, force=True))
    assert seen == [(True, "complete", "running", "running")] and not is_old(run)


def test_an_attempt_that_was_stopped_goes_on_from_its_checkpoint(run, fresh):
    outputs = run.folder.parents[2]
    with interrupted():
        execute(run, settings(outputs, force=True, checkpoint_seconds=0))
    assert is_old(run) and (run.again / "checkpoint.safetensors").exists()
    execute(run, settings(outputs, force=True))
    assert "goes on" in (run.folder / "run.log").read_text()
    assert tables(run) == tables(Run(CONFIG, fresh)) and not run.again.exists()
    assert "first" in run.provenance()


def test_a_linked_attempt_is_not_followed(run, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "metrics.csv").write_text("theirs")
    shutil.copy(run.result_path, elsewhere)
    run.again.symlink_to(elsewhere)
    execute(run, settings(run.folder.parents[2], force=True))
    assert not is_old(run) and not run.again.is_symlink()
    assert {path.name for path in elsewhere.iterdir()} == {"metrics.csv", "result.json"}


def test_an_attempt_with_a_damaged_table_is_not_put_in_place(run, fresh):
    shutil.copytree(Run(CONFIG, fresh).folder, run.again)
    (run.again / "curves.csv").write_text("damaged")
    execute(run, settings(run.folder.parents[2]))
    assert is_old(run)
    (run.folder / "curves.csv").write_text("damaged as well")
    execute(run, settings(run.folder.parents[2]))
    assert tables(run) == tables(Run(CONFIG, fresh)) and not run.again.exists()


STEPS = [(Path, name) for name in ("replace", "unlink", "mkdir", "rmdir")]
"""What changes a folder, beside the writing of files under names of their own."""


def killed(run: Run, wishes: dict, at: int) -> None:
    """Compute the run again, in a process that is killed before its step of this number."""
    left = iter(range(at, -1, -1))

    def counted(step):
        def take(*arguments, **options):
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return step(*arguments, **options)

        return take

    for owner, name in STEPS:
        setattr(owner, name, counted(getattr(owner, name)))
    execute(run, settings(run.folder.parents[2], **wishes))
    os._exit(0)


def test_a_kill_at_any_step_loses_neither_the_old_run_nor_the_new(run, fresh, tmp_path):
    wishes = {"stale": "recompute"}
    new, kept = tables(Run(CONFIG, fresh)), shutil.copytree(run.folder, tmp_path / "kept")
    outputs = run.folder.parents[2]
    seen, at, code = set(), 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        process = multiprocessing.get_context("fork").Process(target=killed, args=(run, wishes, at))
        process.start()
        process.join(60)
        code, at = process.exitcode, at + 1
        if run.is_complete():
            seen.add("old" if is_old(run) else "new")
            assert is_old(run) or tables(run) == new
        else:
            seen.add("half")
            assert "is complete and not in its place" in inventory.problem(run.folder)
            execute(run, settings(outputs))  # whoever comes next puts it there
            assert tables(run) == new
        execute(run, settings(outputs, **wishes))
        assert run.is_complete() and tables(run) == new and describe(run.folder).again is None
        assert inventory.problem(run.folder) is None
        shutil.rmtree(run.folder)
        shutil.copytree(kept, run.folder)
    assert code == 0 and at > 10 and seen == {"old", "half", "new"}
