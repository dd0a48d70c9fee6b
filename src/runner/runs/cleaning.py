"""Remove the folders of runs that nobody wants: never while a process works on a run.

What is removed is what is known to be a run's: of a folder whose `config.yaml` says which run it
is, the files that a run writes. No link is followed.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from runner.core.catalogue import configs, rows_of
from runner.core.errors import Busy, InputError
from runner.runs import lock
from runner.runs.files import PART
from runner.runs.inventory import Found, status_of
from runner.runs.run import (
    CHECKPOINT,
    RESULT,
    WEIGHTS,
    read_provenance,
    read_result,
    read_values,
)

LEFT_OVER = ("failed", "dead", "interrupted", "absent")
"""What is removed where no status is named."""

NAME = re.compile(r".+-[0-9a-f]{8}", re.DOTALL)
"""Of a run's folder."""

AT_ITS_BEGINNING = {".lock", ".lease", "run.log", "provenance.json", "config.yaml"}
"""What a run writes before any number, the configuration last."""

WRITTEN = {RESULT, WEIGHTS, CHECKPOINT, "error.txt", "overview.png", *AT_ITS_BEGINNING}
"""What a run writes beside its tables."""

ORDER = {RESULT: 0, "provenance.json": 2, "config.yaml": 3, ".lock": 4}
"""Of removing files, the others between the first two: at no step is a run complete that is not, or
no longer known to be one; and nothing is removed once others can take the lock."""


def reason_to_leave(found: Found, is_asked_for: bool = True) -> str | None:
    """Return why a run is not removed: not known to be one, or maybe whole; None without a reason.

    is_asked_for: whether those without a result are.
    """
    folder, home = found.folder, found.home
    names = {path.name for path in home.iterdir()}
    if any(path.is_symlink() for path in (folder, home, home.parent, home.parent.parent)):
        return "a link leads there"
    begun = names <= AT_ITS_BEGINNING
    if not (NAME.fullmatch(home.name) and _says_so(found, begun and "config.yaml" not in names)):
        return "its config.yaml does not say that it is a run"
    if is_asked_for:
        return None
    is_whole = read_provenance(folder).get("status") == "complete" and any(folder.glob("*.csv"))
    if found.status == "dead" and is_whole:
        return "its tables may be whole, result.json alone is gone (--status dead removes it)"
    if found.status == "absent" and not begun:
        return "it holds numbers, provenance.json is gone (--status absent removes it)"
    return None


def _says_so(found: Found, has_just_begun: bool) -> bool:
    """Say whether its config.yaml says that it is a run; or it ended before it wrote any."""
    if has_just_begun:
        return found.study in configs()
    with suppress(InputError):
        return read_values(found.home / "config.yaml").get("study") == found.study
    return False


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a run's folder."""
    with suppress(OSError):
        return sum(path.lstat().st_size for path in folder.rglob("*"))
    return 0


def remove(found: Found, queued: Mapping[Path, Path]) -> str | None:
    """Remove a run's folder; return why it is left, or what in it, or None when it is gone.

    queued: as of `inventory.in_queue`. Raises OSError when a file cannot be removed.
    """
    folder = found.folder
    if reason := reason_to_leave(found):
        return reason
    if note := queued.get(found.home):
        return f"a queue may have it, says {note}: cancel job {note.stem} and remove this note"
    try:
        with lock.held(found.home, wait=False, what=found.home.name):
            if (status := status_of(folder, is_held=False)) != found.status:
                return f"it is {status} now"
            own = {path.name for path in _own(folder)}
            others = sorted({path.name for path in folder.iterdir()} - own)
            _empty(folder)
            if found.attempt.is_dir() and not found.attempt.is_symlink():
                _empty(found.attempt)
                with suppress(OSError):  # there is something of others in it
                    found.attempt.rmdir()
    except Busy:
        return "a process works on it"
    with suppress(OSError):  # another process may have begun it anew
        folder.rmdir()
    return f"no run writes {', '.join(others)}; its own files are removed" if others else None


def _empty(folder: Path) -> None:
    """Remove what a run has written in a folder.

    A lock that others wait for goes with the rest: they notice, and make their own.
    """
    for path in sorted(_own(folder), key=lambda path: ORDER.get(path.name, 1)):
        path.unlink(missing_ok=True)


def _own(folder: Path) -> list[Path]:
    """Return what a run has written in a folder, with the tables of its study or its result."""
    tables: set[str] = set()
    with suppress(InputError, ImportError):  # a study that is gone
        tables |= set(rows_of(folder.parent.name))
    with suppress(InputError, KeyError, TypeError):
        tables |= set(read_result(folder / RESULT)["tables"])
    names = WRITTEN | {f"{name}.csv" for name in tables}
    found = []
    for path in folder.iterdir():
        part = PART.fullmatch(path.name)
        is_file = path.is_symlink() or not path.is_dir()
        if is_file and (part["name"] if part else path.name) in names:
            found.append(path)
    return found
