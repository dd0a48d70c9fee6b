"""The old numbers of a run stay in `<name>.before` until its new numbers are complete."""

import json
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from samples import samples
from some_runs import TINY, described
from stopped import interrupted

from runner.commands.runs import main as runs_command
from runner.core.errors import Busy, InputError, RunFailed
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only import study as bn_only
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import cleaning, inventory
from runner.runs.execution import execute
from runner.runs.folder_names import MARK, before, old_of
from runner.runs.inventory import describe
from runner.runs.jobs import Attempt, Job
from runner.runs.run import Run, is_whole, load

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
    (run.folder / "sums.json").unlink()
    (run.folder / "overview.png").write_text("of the old run")
    (run.folder / "notes.txt").write_text("of the user")
    return run


def tables(run: Run) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}


def is_old(folder: Path) -> bool:
    """Whether a folder has all the old numbers, and the user's file."""
    contents = [path.read_bytes() for path in folder.glob("*.csv")]
    return (
        is_whole(folder)
        and all(b"old" in content and b"sgd" not in content for content in contents)
        and (folder / "notes.txt").read_text() == "of the user"
    )


def is_new(run: Run, fresh: Run) -> bool:
    """Whether a run has all the new numbers, the user's file, and nothing of the old ones."""
    names, usual = ({path.name for path in each.folder.iterdir()} for each in (run, fresh))
    folders = [path for path in run.folder.parent.iterdir() if path.suffix != ".lease"]
    left = [path.name for path in folders if any(path.iterdir())]  # a kill may leave an empty one
    return (
        run.is_complete()
        and tables(run) == tables(fresh)
        and names == usual | {"notes.txt"}
        and left == [run.folder.name]
    )


def interrupt(run: Run, **wishes) -> None:
    with interrupted():
        execute(run, settings(run, checkpoint_seconds=0, **wishes))


@pytest.mark.parametrize("wishes", [{"force": True}, {"stale": "recompute"}], ids=str)
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_old_numbers_stay_until_the_new_ones_are_complete(
    run, fresh, monkeypatch, capsys, wishes, error
):
    compute, seen, outputs = bn_only.run, [], run.folder.parents[2]

    def broken(config, context):
        for number, row in enumerate(compute(config, context)):
            if number == 3:
                seen.append((is_old(before(run.folder)), describe(run.folder).status))
                for others in ({"force": True}, {}):
                    with pytest.raises(Busy):
                        execute(Run(CONFIG, outputs), settings(run, wait=False, **others))
                assert runs_command(["clean", "--yes", str(outputs)]) == 0
                raise error("no luck")
            yield row

    with monkeypatch.context() as patch:
        patch.setattr(bn_only, "run", broken)
        with pytest.raises((RunFailed, KeyboardInterrupt)):
            execute(run, settings(run, **wishes))
    assert seen == [(True, "running")] and is_old(before(run.folder))
    said = "interrupted" if error is KeyboardInterrupt else "failed"
    assert describe(run.folder).status == run.status() == said
    assert inventory.folders(outputs) == [run.folder]
    with pytest.raises(InputError, match="1 of 1 runs are missing"):
        load([run])
    capsys.readouterr()
    for words in (["list"], ["show", str(run.folder)], ["check"]):
        assert runs_command([*words, f"outputs={outputs}"]) == 0
        assert f"are in {before(run.folder)}; `runner runs clean`" in capsys.readouterr().out
    assert runs_command(["list", "--json", str(outputs)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["before"] == str(before(run.folder))
    execute(run, settings(run))
    assert is_new(run, fresh) and not run.is_stale()


def test_what_was_stopped_goes_on_from_its_checkpoint_also_with_force(run, fresh):
    interrupt(run, force=True)
    interrupt(run, force=True)
    assert is_old(before(run.folder)), "a second force=true keeps the old numbers"
    execute(run, settings(run, force=True))
    assert "goes on" in (run.folder / "run.log").read_text() and "first" in run.provenance()
    assert is_new(run, fresh)


def test_an_interrupted_computation_is_taken_back(run, capsys):
    def clean(*options: str) -> str:
        assert runs_command(["clean", *options, f"outputs={run.folder.parents[2]}"]) == 0
        return capsys.readouterr().out

    interrupt(run, force=True)
    (run.folder / "notes.txt").write_text("of the second time")
    assert str(before(run.folder)) in clean()
    assert clean("--yes") == f"removed, and its old numbers put back: {run.folder}\n"
    assert is_old(run.folder) and not before(run.folder).exists()
    assert (run.folder / "notes.txt.before").read_text() == "of the second time"
    assert runs_command(["check", str(run.folder.parents[2])]) == 0
    (run.folder / "notes.txt.before").unlink()
    interrupt(run, force=True)
    shutil.rmtree(run.folder)  # by hand
    before(run.folder).rename(run.folder)
    assert is_old(run.folder) and not run.is_wanted(settings(run))
    assert runs_command(["check", str(run.folder.parents[2])]) == 0


def test_a_folder_that_the_user_has_named_so_is_left_alone(run, fresh):
    mine = shutil.copytree(run.folder, before(run.folder))
    with pytest.raises(InputError, match=r"give it another name"):
        execute(run, settings(run, force=True))
    assert is_old(run.folder) and is_old(mine) and not (run.folder / MARK).exists()
    shutil.rmtree(run.folder)
    execute(run, settings(run))
    assert tables(run) == tables(fresh) and is_old(mine)
    assert inventory.folders(run.folder.parents[2]) == [run.folder]
    assert runs_command(["clean", "--status", "complete", "--yes", str(run.folder.parents[2])]) == 0
    assert not run.folder.exists() and is_old(mine)


@pytest.mark.parametrize("has_result", [True, False])
def test_what_version_2_0_left_is_named_and_stays(run, fresh, capsys, has_result):
    left = shutil.copytree(fresh.folder, run.folder.with_name(f"{run.folder.name}.again"))
    if not has_result:
        (left / "result.json").unlink()
    content = {path.name: path.read_bytes() for path in left.iterdir()}
    outputs = run.folder.parents[2]
    assert runs_command(["check", str(outputs)]) == 1
    assert f"{left} was left by version 2.0" in capsys.readouterr().out
    assert inventory.folders(outputs) == [run.folder] and set(load([run])["curves"]["method"])
    for wishes in ({}, {"force": True}):
        execute(run, settings(run, **wishes))
    assert (
        runs_command(["list", str(outputs)]) == runs_command(["clean", "--yes", str(outputs)]) == 0
    )
    assert {path.name: path.read_bytes() for path in left.iterdir()} == content
    shutil.rmtree(run.folder)
    assert runs_command(["list", str(outputs)]) == 0 and runs_command(["check", str(outputs)]) == 1


STEPS = [(Path, name) for name in ("replace", "rename", "unlink", "mkdir", "rmdir")]
"""All that changes a file or a folder, other than writing a file that has just been made."""


def killed(at: int, carry_out: Callable[[], object]) -> int:
    """Carry something out in a process that is killed before its step of this number."""

    def child():
        left = iter(range(at, -1, -1))

        def counted(step):
            def take(*arguments, **options):
                if next(left) == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return step(*arguments, **options)

            return take

        for owner, name in STEPS:
            setattr(owner, name, counted(getattr(owner, name)))
        carry_out()
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    return process.exitcode


def state_of(run: Run, fresh: Run) -> str:
    """Where numbers are, as the next command finds them; every one of them has its own."""
    if run.is_complete():
        assert is_old(run.folder) or tables(run) == tables(fresh)
        return "old" if is_old(run.folder) else "left over" if old_of(run.folder) else "new"
    assert is_old(before(run.folder))
    return "half" if (run.folder / "config.yaml").exists() else "not begun"


@pytest.mark.parametrize(
    "following", samples([{}, {"force": True}, {"stale": "recompute"}], lambda _: "wishes", str)
)
def test_a_kill_at_any_step_loses_neither_the_old_numbers_nor_the_new(
    run, fresh, tmp_path, following, capsys
):
    kept, outputs = shutil.copytree(run.folder, tmp_path / "kept"), run.folder.parents[2]
    seen, at, code = set(), 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        wishes = settings(run, stale="recompute")
        code, at = killed(at, lambda wishes=wishes: execute(run, wishes)), at + 1
        seen.add(state := state_of(run, fresh))
        for word in ("list", "check", "clean"):
            exit_code, said = runs_command([word, str(outputs)]), capsys.readouterr().out
            assert exit_code == 0 or "result.json is gone" in said
            is_named = state in ("half", "not begun") or state == "left over" and word != "clean"
            is_kept = "its tables may be whole" in said  # killed just before the result
            assert (str(before(run.folder)) in said) == is_named or is_kept
        attempt = Attempt(Job(CONFIG, settings(run, **following)))
        is_wanted = run.is_wanted(settings(run, **following))
        assert is_wanted or state in ("old", "new")
        execute(run, settings(run, **following))  # whoever comes next
        assert attempt.is_done() or not is_wanted
        assert is_new(run, fresh) or state == "old" and not following and is_old(run.folder)
        assert runs_command(["check", str(outputs)]) == 0
        shutil.rmtree(run.folder)
        shutil.copytree(kept, run.folder)
    assert code == 0 and seen == {"old", "not begun", "half", "left over", "new"}


def test_a_kill_at_any_step_of_taking_back_loses_nothing(run, tmp_path):
    interrupt(run, force=True)
    kept = shutil.copytree(run.folder.parent, tmp_path / "kept")
    at, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        found = describe(run.folder)
        code, at = killed(at, lambda found=found: cleaning.remove(found)), at + 1
        assert is_old(run.folder) or is_old(before(run.folder))
        if not run.is_complete():
            assert cleaning.remove(describe(run.folder)) is None
        assert is_old(run.folder) and inventory.problem(run.folder) is None
        assert not before(run.folder).exists()
        shutil.rmtree(run.folder.parent)
        shutil.copytree(kept, run.folder.parent)
    assert code == 0 and at > 8


def test_two_processes_at_once_compute_a_run_again_one_after_the_other(run, fresh):
    def again():
        execute(run, settings(run, stale="recompute"))

    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=again) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0] and is_new(run, fresh)
    assert (run.folder / "run.log").read_text().count("starts:") == 1
