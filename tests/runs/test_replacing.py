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

from runner.commands.runs import main as runs_command
from runner.core.errors import Busy, RunFailed
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only import study as bn_only
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import inventory
from runner.runs.execution import execute
from runner.runs.inventory import describe
from runner.runs.run import Run, load

CONFIG = BnOnly(target_width=2, **TINY)


def settings(run: Run, **wishes) -> Settings:
    return Settings(outputs=str(run.folder.parents[2]), device="cpu", **wishes)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Run:
    run = Run(CONFIG, tmp_path_factory.mktemp("fresh"))
    execute(run, settings(run))
    return run


@pytest.fixture
def run(fresh, tmp_path) -> Run:
    """A complete run of other code, whose numbers are others than those of today."""
    run = Run(CONFIG, shutil.copytree(fresh.folder.parents[2], tmp_path / "outputs"))
    result = json.loads(run.result_path.read_text())
    for name in result["tables"]:
        path = run.folder / f"{name}.csv"
        path.write_text(path.read_text().replace("sgd", "old"))
        result["tables"][name] = described(path)
    run.result_path.write_text(json.dumps(result))
    provenance = run.folder / "provenance.json"
    provenance.write_text(json.dumps(run.provenance() | {"code": "another"}))
    (run.folder / "overview.png").write_text("of the old run")
    (run.folder / "notes.txt").write_text("of the user")
    return run


def tables(run: Run) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}


def is_old(run: Run) -> bool:
    assert run.is_complete()
    return all(b"old" in content and b"sgd" not in content for content in tables(run).values())


@pytest.mark.parametrize("wishes", [{"force": True}, {"stale": "recompute"}], ids=str)
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_attempt_takes_the_place_of_the_old_run_when_it_is_complete(
    run, fresh, monkeypatch, wishes, error
):
    compute, seen = bn_only.run, []

    def broken(config, context):
        for number, row in enumerate(compute(config, context)):
            if number == 3:
                statuses = [describe(folder).status for folder in (run.folder, run.again)]
                seen.append((is_old(run), *statuses, run.status()))
                with pytest.raises(Busy):
                    execute(Run(CONFIG, outputs), settings(run, force=True, wait=False))
                execute(Run(CONFIG, outputs), settings(run, wait=False))
                raise error("no luck")
            yield row

    outputs = run.folder.parents[2]
    with monkeypatch.context() as patch:
        patch.setattr(bn_only, "run", broken)
        with pytest.raises((RunFailed, KeyboardInterrupt)):
            execute(run, settings(run, **wishes))
    assert seen == [(True, "complete", "running", "running")]
    execute(run, settings(run))
    assert is_old(run) and load([run]), "it is complete, and is not computed again unasked"
    said = "interrupted" if error is KeyboardInterrupt else "failed"
    assert (describe(run.folder).status, describe(run.again).status) == ("complete", said)
    assert (run.again / "error.txt").exists() == (error is ZeroDivisionError)
    assert runs_command(["check", str(outputs)]) == 0
    assert inventory.folders(outputs) == [run.folder]
    execute(run, settings(run, **wishes))
    assert tables(run) == tables(fresh) and not run.is_stale()
    names, usual = ({path.name for path in each.folder.iterdir()} for each in (run, fresh))
    assert names == usual | {"notes.txt"}, "nothing is left of the old run"
    assert list(run.folder.parent.iterdir()) == [run.folder]


def test_an_attempt_that_was_stopped_goes_on_from_its_checkpoint(run, fresh):
    with interrupted():
        execute(run, settings(run, force=True, checkpoint_seconds=0))
    assert is_old(run) and (run.again / "checkpoint.safetensors").exists()
    execute(run, settings(run, force=True))
    assert "goes on" in (run.folder / "run.log").read_text() and "first" in run.provenance()
    assert tables(run) == tables(fresh) and not run.again.exists()
    shutil.copytree(fresh.folder, run.again)
    (run.again / "curves.csv").write_text("damaged")
    execute(run, settings(run))
    assert run.again.exists(), "a damaged attempt is not put in place"


def killed(run: Run, at: int) -> None:
    """Compute the run again, in a process that is killed before its step of this number."""
    left = iter(range(at, -1, -1))

    def counted(step):
        def take(*arguments, **options):
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return step(*arguments, **options)

        return take

    steps = [(Path, name) for name in ("replace", "rename", "unlink", "mkdir")]
    for owner, name in [*steps, (os, "unlink"), (os, "rmdir")]:  # the last two of shutil.rmtree
        setattr(owner, name, counted(getattr(owner, name)))
    execute(run, settings(run, stale="recompute"))
    os._exit(0)


def test_a_kill_at_any_step_loses_neither_the_old_run_nor_the_new(run, fresh, tmp_path):
    new, kept = tables(fresh), shutil.copytree(run.folder, tmp_path / "kept")
    seen, at, code = set(), 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        process = multiprocessing.get_context("fork").Process(target=killed, args=(run, at))
        process.start()
        process.join(60)
        code, at = process.exitcode, at + 1
        if run.is_complete():
            seen.add("old" if is_old(run) else "new")
            assert is_old(run) or tables(run) == new
        else:
            seen.add("half")
            execute(run, settings(run))  # whoever comes next puts it there
            assert tables(run) == new
        execute(run, settings(run, stale="recompute"))
        assert run.is_complete() and tables(run) == new and not run.again.exists()
        assert runs_command(["check", str(run.folder.parents[2])]) == 0
        assert (run.folder / "notes.txt").read_text() == "of the user"
        shutil.rmtree(run.folder)
        shutil.copytree(kept, run.folder)
    assert code == 0 and at > 10 and seen == {"old", "half", "new"}
