"""What is removed when runs are cleaned up, and what never is."""

import json
import shutil
from contextlib import suppress

import pytest
from some_runs import one, say

from runner.commands.runs import main
from runner.runs import cleaning, lock
from runner.runs.folder_names import MARK, before
from runner.runs.inventory import describe, find


@pytest.fixture
def folder(outputs):
    return one(outputs, target_width=2)


@pytest.fixture
def clean(outputs, capsys):
    """Carries out `runs clean --yes` with options; returns what it says."""

    def carry_out(*options: str) -> str:
        capsys.readouterr()
        assert main(["clean", "--yes", *options, f"outputs={outputs}"]) == 0
        return capsys.readouterr().out

    return carry_out


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("said", ["failed", "interrupted", "running"])
def test_what_failed_died_or_was_interrupted_is_removed_and_nothing_else(
    outputs, folder, said, clean
):
    others = {path: text for path, text in content(outputs).items() if folder not in path.parents}
    nothing = f"nothing to remove under {outputs}\n"
    assert clean() == nothing
    say(folder, said)
    for name in ("overview.png", "error.txt", ".run.log.01234567.part"):
        (folder / name).write_text("")
    for words, number in ((("--where", "target_width == 3"), 2), (("--study", "example20"), 1)):
        others_match = f"complete runs that match: {number} (add --status complete)\n"
        assert clean(*words) == nothing + others_match
    assert clean() == f"removed {folder}\n"
    assert not folder.exists() and content(outputs) == others


@pytest.mark.parametrize("left", [(), ("run.log", "provenance.json"), ("run.log", "error.txt")])
def test_what_was_interrupted_before_it_wrote_its_configuration_is_removed(outputs, left, clean):
    folder = outputs / "runs" / "bn_only" / "target_width=4-01234567"
    folder.mkdir()
    for name in left:
        (folder / name).write_text('{"status": "interrupted"}')
    assert clean() == f"removed {folder}\n" and len(find(outputs)) == 4


def test_whole_numbers_are_removed_only_where_they_are_asked_for(outputs, folder, clean):
    """Without a provenance, without a result, complete, and by other code."""
    for said, removed in (("provenance.json", "absent"), ("result.json", "dead")):
        kept = shutil.copytree(folder, outputs / "kept")
        (folder / "result.json").unlink()
        (folder / said).unlink(missing_ok=True)
        assert f"its tables may be whole (--status {removed} " in clean() and folder.exists()
        assert clean("--status", removed) == f"removed {folder}\n"
        kept.rename(folder)
    about = json.loads((folder / "provenance.json").read_text())
    assert "nothing" in clean("--stale")
    (folder / "provenance.json").write_text(json.dumps(about | {"code": "another"}))
    assert "nothing" in clean() and clean("--stale") == f"removed {folder}\n"
    assert clean("--status", "complete").count("removed /") == 3


def test_what_no_run_writes_is_left_in_its_folder(folder, clean):
    say(folder, "failed")
    (folder / "notes").mkdir()
    mine = {"notes/metrics.csv", "plan.csv", ".run.log.part", "run.log~"}
    for name in mine:
        (folder / name).write_text("mine")
    assert "no run writes .run.log.part, notes, plan.csv, run.log~" in clean()
    assert {str(path.relative_to(folder)) for path in content(folder)} == mine


@pytest.mark.parametrize("name", ["exp1", "exp-0123abcd"])
@pytest.mark.parametrize("config", [None, "lr0: 0.01\n", "study: another\nversion: 1\n", "{"])
def test_what_is_no_run_is_left(outputs, name, config, clean):
    """Other programs have a folder runs/, too; some of their files are called as ours."""
    other = outputs / "runs" / "detect" / name
    other.mkdir(parents=True)
    for file in ("weights.pt", "metrics.csv", "run.log"):
        (other / file).write_text("theirs")
    (other / "provenance.json").write_text('{"status": "failed"}')
    if config is not None:
        (other / "config.yaml").write_text(config)
    before = content(other)
    said = clean() + clean("--status", "absent", "--status", "failed", "--status", "dead")
    assert said.count("does not say that it is a run") == 2 and content(other) == before


@pytest.mark.parametrize("linked", ["run", "study", "runs"])
def test_the_folder_that_a_link_leads_to_is_left(folder, tmp_path, linked, clean):
    say(folder, "failed")
    place = {"run": folder, "study": folder.parent, "runs": folder.parent.parent}[linked]
    elsewhere = place.rename(tmp_path / "elsewhere")
    place.symlink_to(elsewhere)
    before = content(elsewhere)
    assert f"left, for a link leads there: {folder}" in clean() and content(elsewhere) == before


def test_links_in_a_run_are_removed_and_not_followed(folder, tmp_path, clean):
    (tmp_path / "kept").mkdir()
    for name in ("metrics.csv", "kept/metrics.csv", "kept/result.json"):
        (tmp_path / name).write_text("kept")
    say(folder, "failed")
    (folder / "metrics.csv").unlink()
    (folder / "metrics.csv").symlink_to(tmp_path / "metrics.csv")
    (tmp_path / "kept" / MARK).write_text("kept")
    before(folder).symlink_to(tmp_path / "kept")
    clean()
    assert not folder.exists() and len(list((tmp_path / "kept").iterdir())) == 3
    assert (tmp_path / "metrics.csv").read_text() == "kept"


@pytest.mark.parametrize("said", ["failed", "running"])
def test_a_run_that_is_computed_again_gets_its_old_numbers_back(folder, said, clean):
    old = content(folder)
    shutil.copytree(folder, before(folder))
    (before(folder) / MARK).touch()
    say(folder, said)
    with lock.held(folder, wait=False, what="this"):
        assert describe(folder).status == "running" and "nothing" in clean()
    assert clean() == f"removed, and its old numbers put back: {folder}\n"
    assert content(folder) == old and not before(folder).exists()


def test_a_complete_run_is_removed_with_the_old_numbers_that_a_kill_has_left(folder, clean):
    shutil.copytree(folder, before(folder))
    (before(folder) / MARK).touch()
    assert clean("--status", "complete", "--where", "target_width == 2") == f"removed {folder}\n"
    assert not folder.exists() and not before(folder).exists()


def test_a_removal_that_was_stopped_can_be_ended(folder, monkeypatch, clean):
    """Whatever is left after each step is a run that has failed, and is removed the next time."""
    say(folder, "failed")
    unlink, taken = cleaning.Path.unlink, []

    def once(path, missing_ok=False):
        if path.suffix == ".lease":  # which is released as ever
            return unlink(path, missing_ok)
        if len(taken) > steps:
            raise KeyboardInterrupt
        taken.append(path.name)
        unlink(path, missing_ok)

    steps = 0
    with monkeypatch.context() as patch:
        patch.setattr(cleaning.Path, "unlink", once)
        while (folder / "provenance.json").exists():
            assert cleaning.reason_to_leave(describe(folder), False) is None
            with suppress(KeyboardInterrupt):
                cleaning.remove(describe(folder))
            steps += 1
    assert taken[-1] == "provenance.json" and len(taken) > 2
    assert clean("--status", "absent") == f"removed {folder}\n"


def test_a_run_that_is_no_longer_left_over_is_left(folder, tmp_path):
    """A process works on it, or it has been completed meanwhile."""
    kept = shutil.copytree(folder, tmp_path / "kept")
    found = describe(say(folder, "interrupted"))
    with lock.held(folder, wait=False, what="this"):
        assert cleaning.remove(found) == "a process works on it"
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    assert cleaning.remove(found) == "it is complete now"
    assert describe(folder).run.is_complete()
