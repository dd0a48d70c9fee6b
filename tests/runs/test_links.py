"""Links and pipes planted where files are written: nothing outside a folder is touched."""

import json
import os
from pathlib import Path

import pytest
from some_runs import one, say
from stopped import interrupted

from runner.core.errors import InputError, RunFailed
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only import study as bn_only
from runner.publish import gallery
from runner.results.figure import Figure
from runner.results.preview import report
from runner.runs import files
from runner.runs.execution import execute
from runner.runs.inventory import describe

FILES = (
    "config.yaml",
    "metrics.csv",
    "curves.csv",
    "provenance.json",
    "run.log",
    "result.json",
    "checkpoint.safetensors",
    "error.txt",
    "overview.png",
)
PLANTED = [*FILES, *(f".{name}.part" for name in FILES)]

KINDS = {
    "symbolic": lambda path, target: path.symlink_to(target),
    "dangling": lambda path, target: path.symlink_to(target.with_name(f"no-{target.name}")),
    "hard": lambda path, target: path.hardlink_to(target),
}


@pytest.fixture
def outside(tmp_path) -> Path:
    """A folder whose files are called as those of a run, or of a figure."""
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


def plant(folder: Path, names: list[str], outside: Path, kind: str) -> None:
    """Put links to files outside in the place of these."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
        (outside / name).write_text("theirs")
        KINDS[kind](folder / name, outside / name)


def assert_untouched(outside: Path) -> None:
    assert {path.read_text() for path in outside.iterdir()} == {"theirs"}
    assert not [path for path in outside.iterdir() if path.name.startswith("no-")]


def settings(outputs: Path, **wishes) -> Settings:
    return Settings(outputs=str(outputs), device="cpu", **wishes)


@pytest.mark.parametrize(
    ("kind", "wishes"),
    [("symbolic", {}), ("dangling", {}), ("hard", {}), ("symbolic", {"force": True})],
)
def test_a_run_follows_no_link(outputs, outside, kind, wishes):
    folder = one(outputs, target_width=2)
    whole = {name: (folder / name).read_bytes() for name in ("metrics.csv", "curves.csv")}
    run = describe(folder).run
    names = PLANTED
    if wishes:
        run.again.mkdir()
        names = [f".again/{name}" for name in PLANTED]
        (outside / ".again").mkdir()
    plant(folder, names, outside, kind)
    execute(run, settings(outputs, **wishes))
    report(run)
    assert_untouched(outside / ".again" if wishes else outside)
    assert run.is_complete()
    for name in {*FILES} - {"checkpoint.safetensors", "error.txt"}:
        assert (folder / name).is_file() and not (folder / name).is_symlink(), name
        assert (folder / name).stat().st_nlink == 1
    assert {name: (folder / name).read_bytes() for name in whole} == whole


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_failing_run_follows_no_link(outputs, outside, monkeypatch, kind):
    def broken(config, context):
        raise ZeroDivisionError
        yield

    folder = one(outputs, target_width=2)
    run = describe(folder).run
    plant(folder, PLANTED, outside, kind)
    monkeypatch.setattr(bn_only, "run", broken)
    with pytest.raises(RunFailed):
        execute(run, settings(outputs))
    assert_untouched(outside)
    assert "ZeroDivisionError" in (folder / "error.txt").read_text()


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_run_that_goes_on_writes_no_further_through_links(outputs, tmp_path, outside, kind):
    """Their content is what the checkpoint vouches for: it is taken over, and theirs stays."""
    folder = one(outputs, target_width=2)
    whole = {name: (folder / name).read_bytes() for name in ("metrics.csv", "curves.csv")}
    run = describe(say(folder, "failed")).run
    with interrupted():
        execute(run, settings(outputs, checkpoint_seconds=0))
    tables = list(folder.glob("*.csv"))
    assert tables
    for path in tables:
        path.rename(outside / path.name)
        KINDS[kind](path, outside / path.name)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    execute(run, settings(outputs))
    assert "goes on" in (folder / "run.log").read_text()
    assert {name: (folder / name).read_bytes() for name in whole} == whole
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
    assert not any((folder / name).is_symlink() for name in whole)


@pytest.mark.parametrize("name", ["config.yaml", "metrics.csv", "run.log", "result.json"])
def test_no_pipe_is_waited_for(outputs, name):
    folder = one(outputs, target_width=2)
    run = describe(folder).run
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    execute(run, settings(outputs))
    execute(run, settings(outputs, force=True))
    assert run.is_complete()


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_figure_and_a_report_follow_no_link(outputs, outside, kind):
    run = describe(one(outputs, target_width=2)).run
    variant = Figure("fig4", "smoke", ("replicates=2",), (run,), outputs)
    endings = ("png", "pdf", "svg", "csv", "claims.csv", "caption.txt", "provenance.json")
    folder = variant.path("png").parent
    folder.mkdir(parents=True)
    (outputs / "report").mkdir()
    names = [variant.path(ending).name for ending in endings]
    plant(folder, [*names, *(f".{name}.part" for name in names)], outside, kind)
    plant(outputs / "report", ["index.html"], outside, kind)
    variant.make()
    assert gallery.main([f"outputs={outputs}", "scale=smoke"]) == 0
    assert_untouched(outside)
    for path in (*map(variant.path, endings), outputs / "report" / "index.html"):
        assert not path.is_symlink() and path.stat().st_nlink == 1 and path.stat().st_size > 0


def test_nobody_can_foresee_the_name_that_a_file_is_written_under(tmp_path):
    names = set()
    for _ in range(20):
        with files.replaced(tmp_path / "table.csv") as part:
            part.write_text("1")
            names.add(part.name)
    assert len(names) == 20 and all(files.PART.fullmatch(name) for name in names)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_file_that_could_not_be_written_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), files.replaced(tmp_path / "table.csv"):
        raise ZeroDivisionError
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        files.write_atomically(tmp_path / "folder", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_written_file_is_as_readable_as_any_other(tmp_path):
    (tmp_path / "plain").write_text("1")
    files.write_atomically(tmp_path / "atomic", b"1")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_what_a_killed_process_was_writing_goes_with_the_next_attempt(outputs):
    folder = one(outputs, target_width=2)
    run = describe(say(folder, "running")).run
    left = folder / ".checkpoint.safetensors.0123abcd.part"
    left.write_text("half")
    execute(run, settings(outputs))
    assert not left.exists() and run.is_complete()


def test_a_log_that_is_a_folder_is_a_plain_error(outputs):
    folder = one(outputs, target_width=2)
    run = describe(say(folder, "failed")).run
    (folder / "run.log").unlink()
    (folder / "run.log").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        execute(run, settings(outputs))
    assert json.loads((folder / "provenance.json").read_text())["status"] == "failed"
