"""Files that the user names: `runs export` and `runs plot --out` save them as an editor does."""

import os
import stat
import threading

import in_process
import pytest

from runner.runs.files import write_named

WAYS = ["export", "plot"]


@pytest.fixture
def save(outputs, monkeypatch, capsys):
    """Runs the command that writes a file; its exit code and errors."""

    def run(way, path):
        words = {
            "export": ["runs", "export", "--csv", "--study", "bn_only", str(path)],
            "plot": ["runs", "plot", "--study", "bn_only", "--x", "target_width", "--out"],
        }[way]
        words += [str(path)] * (way == "plot") + [f"outputs={outputs}"]
        code = in_process.run(words, monkeypatch)
        return code, capsys.readouterr().err

    return run


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("way", WAYS)
def test_a_link_is_followed_and_a_mode_stays(save, tmp_path, way):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target, link = folder / "target.png", tmp_path / "link.png"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    assert save(way, link)[0] == 0
    assert link.is_symlink() and target.read_bytes() != b"old" and mode(target) == 0o600
    assert [path.name for path in folder.iterdir()] == ["target.png"]
    target.unlink()
    assert save(way, link)[0] == 0
    assert link.is_symlink() and target.is_file(), "a link to what is not there yet"


@pytest.mark.parametrize("way", WAYS)
def test_a_read_only_file_is_refused(save, tmp_path, way):
    path = tmp_path / "kept.png"
    path.write_text("old")
    path.chmod(0o444)
    code, errors = save(way, path)
    assert code == 2 and "kept.png cannot be written: it is read-only" in errors
    assert path.read_text() == "old" and mode(path) == 0o444


@pytest.mark.parametrize("way", WAYS)
def test_hard_links_stay(save, tmp_path, way):
    one, other = tmp_path / "one.png", tmp_path / "other.png"
    one.write_text("old")
    os.link(one, other)
    assert save(way, one)[0] == 0
    assert one.samefile(other) and other.read_bytes() != b"old"


@pytest.mark.parametrize("way", WAYS)
def test_a_pipe_is_written_into(save, tmp_path, way):
    path, read = tmp_path / "pipe.png", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    code, _ = save(way, path)
    reader.join(20)
    assert code == 0 and len(read[0]) > 100 and stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("way", WAYS)
def test_what_cannot_be_written_is_said_in_a_line(save, tmp_path, way):
    (tmp_path / "folder.png").mkdir()
    loop = tmp_path / "loop.png"
    loop.symlink_to(loop)
    for path in (tmp_path / "folder.png", loop):
        code, errors = save(way, path)
        assert (
            code == 2 and f"{path.name} cannot be written" in errors and "Traceback" not in errors
        )


def test_a_new_file_has_the_usual_mode(tmp_path):
    write_named(tmp_path / "new", b"content")
    (tmp_path / "usual").write_text("")
    assert mode(tmp_path / "new") == mode(tmp_path / "usual")
