"""Remove the folders of unwanted runs and old numbers, but never while a process works on a run.

Only the files that a run writes are removed, and only from a folder whose `config.yaml` says that
it is the folder of a run. No link is followed.
"""

import os
from contextlib import suppress
from pathlib import Path

from runner.core.catalogue import rows_of, studies
from runner.core.errors import Busy, InputError
from runner.runs import lock
from runner.runs.files import PART
from runner.runs.folder_names import MARK, NAME, before, old_of
from runner.runs.inventory import RunInfo, status_of
from runner.runs.run import RESULT, STATES, WRITTEN, read_provenance, read_result, read_values

LEFT_OVER = ("failed", "dead", "interrupted", "absent")
"""The statuses of the runs that are removed if the user names no status."""

FIRST_FILES = {"run.log", "provenance.json", "error.txt"}
"""The files that a run may write before its configuration and any number."""

ORDER = {RESULT: 0, "provenance.json": 2, "config.yaml": 3, MARK: 4}
"""The order in which files are removed; 1 for all others. After each step the folder can still be
recognized as the folder of an incomplete run."""


def reason_to_leave(info: RunInfo, is_asked_for: bool = True) -> str | None:
    """Return in words why a run must not be removed, or None if it may be removed.

    Reasons are a link, a folder that may not be a run's, and tables that may be complete.
    is_asked_for: whether the user named the run's status; a run with tables may then be removed.
    """
    folder = info.folder
    if any(path.is_symlink() for path in (folder, *folder.parents[:2])):
        return "a link leads there"
    study = None
    names = os.listdir(folder) if folder.exists() else ()  # it may have only old numbers
    is_begun = any(name not in FIRST_FILES and not PART.fullmatch(name) for name in names)
    if not is_begun and info.study in studies():
        study = info.study
    with suppress(InputError):
        study = read_values(folder / "config.yaml").get("study")
    if not NAME.fullmatch(folder.name) or study != info.study:
        return "its config.yaml does not say that it is a run"
    is_unfinished = read_provenance(folder).get("status") in ("running", "failed", "interrupted")
    if not is_asked_for and not is_unfinished and any(folder.glob("*.csv")):
        return f"its tables may be whole (--status {info.status} removes it)"
    return None


def size_of(folder: Path) -> int:
    """Return the number of bytes of all files in a run's folder, 0 if they cannot be read."""
    with suppress(OSError):
        return sum(path.lstat().st_size for path in folder.rglob("*"))
    return 0


def remove(info: RunInfo) -> str | None:
    """Remove the files of a run, and its folder. If it has old numbers, they are its numbers again.

    Returns None if all files are removed. Otherwise it returns the reason in words: a reason of
    `reason_to_leave`, a process that works on the run, a changed status, or files that no run
    writes. Raises OSError if a file cannot be removed.
    """
    folder = info.folder
    if reason := reason_to_leave(info):
        return reason
    try:
        with lock.held(folder, wait=False, what=folder.name):
            if (status := status_of(folder, is_held=False)) != info.status:
                return f"it is {status} now"
            if status == "complete":
                remove_old(folder)
            folder.mkdir(exist_ok=True)
            others = _others(folder, remove=True)
            if old := old_of(folder):
                _move(others, old)
                old.rename(folder)  # which is empty
                (folder / MARK).unlink()
                return None
    except Busy:
        return "a process works on it"
    with suppress(OSError):  # it has other files, or another process has begun the run again
        folder.rmdir()
    names = ", ".join(path.name for path in others)
    return f"no run writes {names}; its own files are removed" if others else None


def remove_old(folder: Path) -> None:
    """Remove the old numbers of a run whose new numbers are complete.

    The user's files move to the run's folder. If this process is killed, the next call continues.
    Only the owner of the lock may call this function.
    """
    if old := old_of(folder):
        _move(_others(old), folder)
        _others(old, remove=True)
        old.rmdir()


def _move(paths: list[Path], folder: Path) -> None:
    """Move files to a folder. A file whose name is taken there gets the ending `.before`."""
    for path in paths:
        target = folder / path.name
        while os.path.lexists(target):
            target = before(target)
        path.rename(target)


def _others(folder: Path, remove: bool = False) -> list[Path]:
    """Return the files in a folder that no run writes. remove: whether to remove all others."""
    names = set(WRITTEN) | {path.name for path in folder.glob(STATES.format("*"))}
    with suppress(InputError, ImportError):  # the study may no longer exist
        names |= {f"{name}.csv" for name in rows_of(folder.parent.name)}
    with suppress(InputError, KeyError, TypeError):
        names |= {f"{name}.csv" for name in read_result(folder / RESULT)["tables"]}
    others = []
    for path in sorted(folder.iterdir(), key=lambda path: (ORDER.get(path.name, 1), path.name)):
        part = PART.fullmatch(path.name)
        is_written = (part["name"] if part else path.name) in names
        if not is_written or (path.is_dir() and not path.is_symlink()):
            others.append(path)
        elif remove:
            path.unlink(missing_ok=True)
    return others
