"""Remove the folders of runs that nobody wants, and never while a process works on a run.

Of a folder whose `config.yaml` says which run it is, the files that a run writes are removed, and
no others. No link is followed.
"""

from contextlib import suppress
from pathlib import Path

from runner.core.catalogue import rows_of, studies
from runner.core.errors import Busy, InputError
from runner.runs import lock
from runner.runs.files import PART
from runner.runs.inventory import RunInfo, attempt_at, home_of, status_of
from runner.runs.run import (
    CHECKPOINT,
    NAME,
    RESULT,
    WEIGHTS,
    read_provenance,
    read_result,
    read_values,
)

LEFT_OVER = ("failed", "dead", "interrupted", "absent")
"""The statuses of runs that are removed where no status is named."""

FIRST_FILES = {".lock", ".lease", "run.log", "provenance.json", "config.yaml"}
"""The files that a run writes before any number, the configuration last."""

WRITTEN = {RESULT, WEIGHTS, CHECKPOINT, "error.txt", "overview.png", *FIRST_FILES}
"""The files that a run writes beside its tables."""

ORDER = {RESULT: 0, "provenance.json": 2, "config.yaml": 3, ".lock": 4}
"""The order of removing files, 1 for all others: after each step the folder is still known to be a
run's that is not complete; and nothing is removed once others can take the lock."""


def reason_to_leave(info: RunInfo, is_asked_for: bool = True) -> str | None:
    """Return why a run is not removed: not known to be one, or maybe whole; None without a reason.

    is_asked_for: whether its status was named.
    """
    folder, home = info.folder, info.home
    if any(path.is_symlink() for path in (folder, home, home.parent, home.parent.parent)):
        return "a link leads there"
    names = {path.name for path in home.iterdir()}
    if names <= FIRST_FILES - {"config.yaml"}:
        study = info.study if info.study in studies() else None
    else:
        study = None
        with suppress(InputError):
            study = read_values(home / "config.yaml").get("study")
    if not NAME.fullmatch(home.name) or study != info.study:
        return "its config.yaml does not say that it is a run"
    if is_asked_for:
        return None
    is_whole = read_provenance(folder).get("status") == "complete" and any(folder.glob("*.csv"))
    if info.status == "dead" and is_whole:
        return "its tables may be whole, result.json alone is gone (--status dead removes it)"
    if info.status == "absent" and not names <= FIRST_FILES:
        return "it holds numbers, provenance.json is gone (--status absent removes it)"
    return None


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a run's folder."""
    with suppress(OSError):
        return sum(path.lstat().st_size for path in folder.rglob("*"))
    return 0


def remove(info: RunInfo) -> str | None:
    """Remove a run's folder; return why it is left, or what in it, or None when it is gone.

    Raises OSError when a file cannot be removed.
    """
    folder = info.folder
    if reason := reason_to_leave(info):
        return reason
    try:
        with lock.held(info.home, wait=False, what=info.home.name):
            if (status := status_of(folder, is_held=False)) != info.status:
                return f"it is {status} now"
            if (attempt := attempt_at(folder)).is_dir() and not attempt.is_symlink():
                _empty(attempt)
                with suppress(OSError):  # it has files of others
                    attempt.rmdir()
            others = _empty(folder)
    except Busy:
        return "a process works on it"
    with suppress(OSError):  # another process may have begun it anew
        folder.rmdir()
    return f"no run writes {', '.join(others)}; its own files are removed" if others else None


def _empty(folder: Path) -> list[str]:
    """Remove the files that a run has written in a folder; return the names of all others.

    A lock that others wait for goes with the rest: they notice, and make their own.
    """
    names = set(WRITTEN)
    with suppress(InputError, ImportError):  # a study that is gone
        names |= {f"{name}.csv" for name in rows_of(home_of(folder).parent.name)}
    with suppress(InputError, KeyError, TypeError):
        names |= {f"{name}.csv" for name in read_result(folder / RESULT)["tables"]}
    others = []
    for path in sorted(folder.iterdir(), key=lambda path: (ORDER.get(path.name, 1), path.name)):
        part = PART.fullmatch(path.name)
        is_link = path.is_symlink()
        is_written = (part["name"] if part else path.name) in names
        if not is_written or (path.is_dir() and not is_link):
            others.append(path.name)
        else:
            path.unlink(missing_ok=True)
    return others
