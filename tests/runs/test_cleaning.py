"""What is removed when runs are cleaned up, and what never is."""

import json
import multiprocessing
import shutil
from contextlib import suppress

import pytest
from some_runs import one, say

from runner.core.errors import InputError
from runner.runs import cleaning, command, inventory, lock
from runner.runs.inventory import describe, find
from runner.runs.run import AGAIN
from runner.runs.selection import Selection, parse_where


@pytest.fixture
def folder(outputs):
    return one(outputs, target_width=2)


def removable(outputs, **options):
    return [each.folder for each in cleaning.removable(outputs, Selection(**options))]


@pytest.mark.parametrize("said", ["failed", "interrupted", "running"])
def test_what_failed_died_or_was_interrupted_is_removable_and_nothing_else(outputs, folder, said):
    assert removable(outputs) == []
    say(folder, said)
    assert removable(outputs) == [folder]
    assert removable(outputs, where=parse_where(["target_width=3"])) == []
    assert removable(outputs, studies=("example20",)) == []


@pytest.mark.parametrize("left", [(), (".lock",), (".lock", "run.log", "provenance.json")])
def test_what_was_interrupted_before_it_wrote_its_configuration_is_removed(outputs, left, capsys):
    """Ctrl-C while a run looks at its machine leaves no more than its lock."""
    folder = outputs / "runs" / "bn_only" / "target_width=4-01234567"
    folder.mkdir()
    for name in left:
        (folder / name).touch()
    if len(left) > 1:
        (folder / "provenance.json").write_text('{"status": "interrupted"}')
    assert removable(outputs) == [folder]
    assert command.main(["clean", "--yes", str(outputs)]) == 0
    assert not folder.exists() and len(find(outputs)) == 4


def test_numbers_without_a_provenance_are_left_unless_they_are_asked_for(outputs, folder):
    for name in ("provenance.json", "result.json"):
        (folder / name).unlink()
    assert describe(folder).status == "absent" and removable(outputs) == []
    assert removable(outputs, statuses=("absent",)) == [folder]


def test_complete_runs_are_removable_only_where_they_are_asked_for(outputs, folder):
    assert len(removable(outputs, statuses=("complete",))) == 4
    assert removable(outputs, stale=True) == []
    about = json.loads((folder / "provenance.json").read_text())
    (folder / "provenance.json").write_text(json.dumps(about | {"code": "another"}))
    assert removable(outputs, stale=True) == [folder]
    assert removable(outputs) == []


def test_a_run_whose_configuration_cannot_be_read_is_kept_with_its_numbers(outputs, folder):
    (folder / "config.yaml").write_text("study: of_another_time\n")
    assert removable(outputs) == [] and removable(outputs, stale=True) == []


def test_what_runs_cannot_be_asked_for(outputs):
    with pytest.raises(InputError, match="is never removed"):
        removable(outputs, statuses=("failed", "running"))


def test_a_removed_run_leaves_nothing_and_the_others_as_they_are(outputs, folder):
    others = {path: path.read_bytes() for path in outputs.rglob("*") if path.is_file()}
    others = {path: text for path, text in others.items() if folder not in path.parents}
    say(folder, "failed")
    for name in ("overview.png", "error.txt", ".run.log.01234567.part"):
        (folder / name).write_text("")
    assert cleaning.remove(describe(folder), {}) is None
    assert not folder.exists()
    assert {path: path.read_bytes() for path in outputs.rglob("*") if path.is_file()} == others


def test_what_no_run_writes_is_left_in_its_folder(outputs, folder):
    say(folder, "failed")
    (folder / "notes").mkdir()
    for name in ("notes/metrics.csv", "plan.csv", ".run.log.part", "run.log~"):
        (folder / name).write_text("mine")
    left = cleaning.remove(describe(folder), {})
    assert (
        left == "no run writes .run.log.part, notes, plan.csv, run.log~; its own files are removed"
    )
    assert {path.name for path in folder.iterdir()} == {
        "notes", "plan.csv", ".run.log.part", "run.log~"
    }  # fmt: skip
    assert (folder / "notes" / "metrics.csv").read_text() == "mine"


@pytest.mark.parametrize("name", ["exp1", "exp-0123abcd"])
@pytest.mark.parametrize(
    "config", [None, "lr0: 0.01\n", "study: another\nversion: 1\n", "- a", "{"]
)
def test_what_is_no_run_is_left(outputs, name, config):
    """Other programs have a folder runs/, too; some of their files are called as ours."""
    other = outputs / "runs" / "detect" / name
    other.mkdir(parents=True)
    for file in ("weights.pt", "metrics.csv", "run.log"):
        (other / file).write_text("theirs")
    (other / "provenance.json").write_text('{"status": "failed"}')
    if config is not None:
        (other / "config.yaml").write_text(config)
    before = {path.name: path.read_text() for path in other.iterdir()}
    for statuses in ((), ("absent", "failed", "dead")):
        assert removable(outputs, statuses=statuses) == []
    (found,) = [each for each in find(outputs) if each.folder == other]
    assert "does not say that it is a run" in cleaning.remove(found, {})
    assert {path.name: path.read_text() for path in other.iterdir()} == before


@pytest.mark.parametrize("linked", ["run", "study", "runs"])
def test_the_folder_that_a_link_leads_to_is_left(outputs, folder, tmp_path, linked):
    say(folder, "failed")
    place = {"run": folder, "study": folder.parent, "runs": folder.parent.parent}[linked]
    elsewhere = place.rename(tmp_path / "elsewhere")
    place.symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    assert removable(outputs) == []
    assert cleaning.remove(describe(folder), {}) == "a link leads there"
    assert sorted(elsewhere.rglob("*")) == before


def test_links_in_a_run_are_removed_and_not_followed(outputs, folder, tmp_path):
    (tmp_path / "kept").mkdir()
    for name in ("metrics.csv", "kept/metrics.csv", "kept/result.json"):
        (tmp_path / name).write_text("kept")
    say(folder, "failed")
    (folder / "metrics.csv").unlink()
    (folder / "metrics.csv").symlink_to(tmp_path / "metrics.csv")
    (folder / AGAIN).symlink_to(tmp_path / "kept")
    assert cleaning.remove(describe(folder), {}) is None
    assert not folder.exists() and len(list((tmp_path / "kept").iterdir())) == 2
    assert (tmp_path / "metrics.csv").read_text() == "kept"


def test_a_run_whose_result_alone_is_gone_is_left_unless_it_is_asked_for(outputs, folder, capsys):
    say(folder, "complete")
    assert describe(folder).status == "dead" and removable(outputs) == []
    assert command.main(["clean", "--yes", str(outputs)]) == 0
    assert (
        f"result.json alone is gone (--status dead removes it): {folder}" in capsys.readouterr().out
    )
    assert (folder / "metrics.csv").exists()
    assert removable(outputs, statuses=("dead",)) == [folder]


@pytest.mark.parametrize("said", ["failed", "interrupted", "running"])
def test_an_attempt_at_computing_again_that_has_stopped_is_removed_alone(
    outputs, folder, said, capsys
):
    say(shutil.copytree(folder, folder / AGAIN), said)
    assert removable(outputs) == [folder / AGAIN]
    assert command.main(["list", str(outputs)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if folder.name[-8:] in line]
    assert line.split()[3:5] == ["complete", "dead" if said == "running" else said]
    with lock.held(folder, wait=False, what="this"):
        assert removable(outputs) == [] and describe(folder).again == "running"
    assert command.main(["clean", "--yes", str(outputs)]) == 0
    assert f"removed {folder / AGAIN}" in capsys.readouterr().out
    assert not (folder / AGAIN).exists() and describe(folder).run.is_complete()


def test_a_removal_that_was_stopped_can_be_ended(outputs, folder, monkeypatch):
    """Whatever is left after each step is a run that has failed, and is removed the next time."""
    say(folder, "failed")
    unlink, taken = cleaning.Path.unlink, []

    def once(path, missing_ok=False):
        if path.name == ".lease":  # which is released as ever
            return unlink(path, missing_ok)
        if len(taken) > steps:
            raise KeyboardInterrupt
        taken.append(path.name)
        unlink(path, missing_ok)

    monkeypatch.setattr(cleaning.Path, "unlink", once)
    steps = 0
    while (folder / "provenance.json").exists():
        assert removable(outputs) == [folder]
        with suppress(KeyboardInterrupt):
            cleaning.remove(describe(folder), {})
        steps += 1
    assert taken[-1] == "provenance.json" and len(taken) > 2
    assert removable(outputs, statuses=("absent",)) == [folder]


def test_a_removed_run_takes_its_attempt_with_it(outputs, folder):
    say(shutil.copytree(folder, folder / AGAIN), "failed")
    asked = removable(
        outputs, statuses=("complete", "failed"), where=parse_where(["target_width=2"])
    )
    assert asked == [folder]
    assert cleaning.remove(describe(folder), {}) is None and not folder.exists()


def test_the_size_is_that_of_its_files(folder):
    sizes = sum(path.stat().st_size for path in folder.iterdir())
    assert cleaning.size_of(folder) == sizes > 0
    assert cleaning.size_of(folder / "nowhere") == 0


def test_a_run_that_a_process_has_taken_up_is_left(outputs, folder):
    found = describe(say(folder, "interrupted"))
    with lock.held(folder, wait=False, what="this"):
        assert cleaning.remove(found, {}) == "a process works on it"
    assert (folder / "metrics.csv").exists()


def test_a_run_that_has_been_completed_meanwhile_is_left(outputs, folder, tmp_path):
    kept = shutil.copytree(folder, tmp_path / "kept")
    found = describe(say(folder, "interrupted"))
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    assert cleaning.remove(found, {}) == "it is complete now"
    assert describe(folder).run.is_complete()


def test_a_run_that_a_queue_may_bring_back_is_left(outputs, folder):
    found = describe(say(folder, "interrupted"))
    note = outputs / inventory.QUEUED / "7.json"
    assert "cancel job 7" in cleaning.remove(found, {folder: note})
    assert (folder / "metrics.csv").exists()


def wait_for(folder, got) -> None:
    """Another process that is to compute the run."""
    folder.mkdir(parents=True, exist_ok=True)
    with lock.held(folder, wait=True, what="this"):
        got.put((folder / ".lease").exists())


def test_who_waits_for_the_lock_of_a_removed_run_makes_a_new_one(outputs, folder, monkeypatch):
    context = multiprocessing.get_context("fork")
    got = context.Queue()
    waiting = context.Process(target=wait_for, args=(folder, got))
    empty = cleaning._empty

    def slow(path):
        waiting.start()
        waiting.join(0.3)
        empty(path)

    monkeypatch.setattr(cleaning, "_empty", slow)
    monkeypatch.setattr(cleaning.Path, "rmdir", lambda path: None)  # as if begun anew by then
    assert cleaning.remove(describe(say(folder, "failed")), {}) is None
    assert got.get(timeout=20) is True
    waiting.join(20)


def test_what_is_found_again_after_cleaning_is_the_rest(outputs, folder):
    say(folder, "failed")
    for found in cleaning.removable(outputs, Selection()):
        cleaning.remove(found, {})
    assert len(find(outputs)) == 3
