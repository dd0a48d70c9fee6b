"""Files are replaced in one step: links, modes, pipes, and what is left by a killed process."""

import json
import os
import stat
import threading

import pytest
from some_runs import one, say

from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.runs import files
from runner.runs.execution import execute
from runner.runs.files import write_atomically
from runner.runs.inventory import describe


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_error_names_the_file_that_was_meant(tmp_path):
    for path in (tmp_path / "absent/picture.png", tmp_path / "file/picture.png"):
        (tmp_path / "file").write_text("")
        with pytest.raises(OSError) as caught:
            write_atomically(path, b"")
        assert caught.value.filename == str(path)


def test_a_link_is_followed_and_modes_are_kept(tmp_path):
    (tmp_path / "usual").write_text("")
    write_atomically(tmp_path / "new", b"content")
    assert mode(tmp_path / "new") == mode(tmp_path / "usual")
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    link.symlink_to(target)
    for content in (b"new", b"newer"):
        write_atomically(link, content)
        assert link.is_symlink() and target.read_bytes() == content
        target.chmod(0o600)
    assert mode(target) == 0o600 and list(target.parent.iterdir()) == [target]


def test_a_pipe_is_written_into(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_atomically(path, b"content")
    reader.join(20)
    assert read == [b"content"] and stat.S_ISFIFO(path.stat().st_mode)


def test_a_file_that_cannot_be_written_stays_and_leaves_nothing_beside_it(tmp_path):
    path, folder = tmp_path / "table.csv", tmp_path / "folder"
    folder.mkdir()
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), files.replaced(path) as part:
        part.write_text("half")
        raise ZeroDivisionError
    path.chmod(0o444)
    for wrong, error in ((path, PermissionError), (folder, IsADirectoryError)):
        with pytest.raises(error):
            write_atomically(wrong, b"1")
    assert path.read_text() == "old" and set(tmp_path.iterdir()) == {path, folder}


def test_the_file_that_a_killed_process_was_writing_goes_with_the_next_attempt(outputs):
    folder = one(outputs, target_width=2)
    run = describe(say(folder, "running")).run
    left = folder / ".checkpoint.safetensors.0123abcd.part"
    left.write_text("half")
    execute(run, Settings(outputs=str(outputs), device="cpu"))
    assert not left.exists() and run.is_complete()


def test_a_log_that_is_a_folder_is_a_plain_error(outputs):
    folder = one(outputs, target_width=2)
    run = describe(say(folder, "failed")).run
    (folder / "run.log").unlink()
    (folder / "run.log").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        execute(run, Settings(outputs=str(outputs), device="cpu"))
    assert json.loads((folder / "provenance.json").read_text())["status"] == "failed"
