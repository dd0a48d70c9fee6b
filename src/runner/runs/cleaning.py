"""Removing the folders of runs that nobody wants: never of one that a process works on."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from filelock import Timeout

from runner.core.errors import InputError
from runner.runs import locks
from runner.runs.inventory import Found, Status, find, status_of
from runner.runs.selection import Selection

LEFT_OVER: tuple[Status, ...] = ("failed", "dead", "interrupted")
"""What is removed where no status is named."""


def removable(outputs: Path, selection: Selection) -> list[Found]:
    """The runs that would be removed; complete ones only where the selection asks for them.

    Raises InputError for a selection of what does not exist, or of what is being computed.
    """
    if "running" in selection.statuses:
        raise InputError("--status running: a run that is being computed is never removed")
    statuses = selection.statuses or (("complete",) if selection.stale else LEFT_OVER)
    return replace(selection, statuses=statuses).choose(find(outputs))


def size_of(folder: Path) -> int:
    """Bytes of all files in a run's folder."""
    with suppress(OSError):
        return sum(path.lstat().st_size for path in folder.rglob("*"))
    return 0


def remove(found: Found, queued: Mapping[Path, Path]) -> str | None:
    """Remove a run's folder; why it is left, or None when it is gone.

    queued: as of `inventory.in_queue`. Raises OSError when a file cannot be removed.
    """
    folder = found.folder
    if note := queued.get(folder):
        return f"a queue may have it, says {note}: cancel job {note.stem} and remove this note"
    try:
        lock = locks.acquire(folder, wait=False)
    except Timeout:
        return "a process works on it"
    try:
        if (status := status_of(folder, is_held=False)) != found.status:
            return f"it is {status} now"
        _empty(folder)
    finally:
        lock.release()
    with suppress(OSError):  # another process may have begun it anew
        folder.rmdir()
    return None


def _empty(folder: Path) -> None:
    """Remove what is in a folder, the result first, so that no step leaves a false one.

    A lock that others wait for goes with the rest: they notice, and make their own. The lease is
    removed by who holds it.
    """
    result = folder / "result.json"
    if result.is_file():
        result.unlink()
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != ".lease":
            path.unlink(missing_ok=True)
