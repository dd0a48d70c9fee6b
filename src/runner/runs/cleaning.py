"""Remove the folders of unwanted runs, but never while a process works on a run.

Only the files that a run writes are removed, and only from a folder whose `config.yaml` says that
it is the folder of a run. No link is followed.
"""

from contextlib import suppress
from pathlib import Path

from runner.core.catalogue import rows_of, studies
from runner.core.errors import Busy, InputError
from runner.runs import lock
from runner.runs.files import PART
from runner.runs.folder_names import AGAIN, NAME
from runner.runs.inventory import RunInfo, status_of
from runner.runs.run import RESULT, WRITTEN, read_provenance, read_result, read_values

LEFT_OVER = ("failed", "dead", "interrupted", "absent")
"""The statuses of the runs that are removed if the user names no status."""

FIRST_FILES = {"run.log", "provenance.json"}
"""The files that a run writes before its configuration and any number."""

ORDER = {RESULT: 0, "provenance.json": 2, "config.yaml": 3}
"""The order in which files are removed; 1 for all others. After each step the folder can still be
recognized as the folder of an incomplete run."""


def reason_to_leave(info: RunInfo, is_asked_for: bool = True) -> str | None:
    """Return in words why a run must not be removed, or None if it may be removed.

    Reasons are a link, a folder that may not be a run's, and tables that may be complete.
    is_asked_for: whether the user named the run's status; a run with tables may then be removed.
    """
    folder = info.folder
    if any(path.is_symlink() for path in (folder, info.home, *folder.parents[:2])):
        return "a link leads there"
    study = None
    if {path.name for path in folder.iterdir()} <= FIRST_FILES and info.study in studies():
        study = info.study
    with suppress(InputError):
        study = read_values(folder / "config.yaml").get("study")
    if not NAME.fullmatch(info.home.name) or study != info.study:
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
    """Remove the files of a run, and its folder.

    Returns None if all files are removed. Otherwise it returns the reason in words: a reason of
    `reason_to_leave`, a process that works on the run, a changed status, or files that no run
    writes. Raises OSError if a file cannot be removed.
    """
    folder, others = info.folder, list[str]()
    if reason := reason_to_leave(info):
        return reason
    attempt = folder.with_name(folder.name + AGAIN)
    parts = [path for path in (attempt, folder) if path.is_dir() and not path.is_symlink()]
    try:
        with lock.held(info.home, wait=False, what=info.home.name):
            if (status := status_of(folder, is_held=False)) != info.status:
                return f"it is {status} now"
            for part in parts:
                others += _empty(part)
    except Busy:
        return "a process works on it"
    for part in parts:
        with suppress(OSError):  # it has other files, or another process has begun the run again
            part.rmdir()
    return f"no run writes {', '.join(others)}; its own files are removed" if others else None


def _empty(folder: Path) -> list[str]:
    """Remove the files in a folder that a run has written; return the names of all others."""
    names = set(WRITTEN)
    with suppress(InputError, ImportError):  # the study may no longer exist
        names |= {f"{name}.csv" for name in rows_of(folder.parent.name)}
    with suppress(InputError, KeyError, TypeError):
        names |= {f"{name}.csv" for name in read_result(folder / RESULT)["tables"]}
    others = []
    for path in sorted(folder.iterdir(), key=lambda path: (ORDER.get(path.name, 1), path.name)):
        part = PART.fullmatch(path.name)
        is_written = (part["name"] if part else path.name) in names
        if is_written and (path.is_symlink() or not path.is_dir()):
            path.unlink(missing_ok=True)
        else:
            others.append(path.name)
    return others
