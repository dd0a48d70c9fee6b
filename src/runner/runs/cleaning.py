"""Removing the folders of runs that nobody wants: never of one that a process works on.

What is removed is what is known to be a run's: of a folder whose `config.yaml` says which run it
is, the files that a run writes. No link is followed.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from runner.core.catalogue import configs, rows_of
from runner.core.errors import Busy, InputError
from runner.runs import lock
from runner.runs.files import PART
from runner.runs.inventory import (
    Found,
    Status,
    attempts,
    find,
    in_queue,
    read_values,
    status_of,
)
from runner.runs.run import AGAIN, RESULT, read_provenance, read_result
from runner.runs.selection import Selection

LEFT_OVER: tuple[Status, ...] = ("failed", "dead", "interrupted", "absent")
"""What is removed where no status is named."""

NAME = re.compile(r".+-[0-9a-f]{8}", re.DOTALL)
"""Of a run's folder."""

WRITTEN = {
    RESULT,
    "checkpoint.safetensors",
    "config.yaml",
    "error.txt",
    "overview.png",
    "provenance.json",
    "run.log",
    ".lock",
}
"""What a run writes beside its tables and `.lease`, which is removed by who holds it."""

AT_ITS_BEGINNING = {".lock", ".lease", "run.log", "provenance.json", "config.yaml"}
"""What a run writes before any number, the configuration last."""

ORDER = {RESULT: 0, "provenance.json": 2, "config.yaml": 3, ".lock": 4}
"""Of removing files, the others between the first two: at no step is a run complete that is not, or
no longer known to be one; and nothing is removed once others can take the lock."""


def considered(outputs: Path, selection: Selection) -> list[tuple[Found, str | None]]:
    """The runs that are asked for, and each attempt at computing one again that has stopped; with
    why it is left nevertheless, or None.

    Complete runs are only where the selection asks for them. Raises InputError for a selection of
    what does not exist, or of what is being computed.
    """
    if "running" in selection.statuses:
        raise InputError("--status running: a run that is being computed is never removed")
    statuses = selection.statuses or (("complete",) if selection.stale else LEFT_OVER)
    found = find(outputs)
    found += attempts(found, in_queue(outputs))
    chosen = replace(selection, statuses=statuses).choose(found)
    folders = {each.folder for each in chosen}
    chosen = [each for each in chosen if each.folder == each.home or each.home not in folders]
    return [(each, _reason_to_leave(each, each.status in selection.statuses)) for each in chosen]


def removable(outputs: Path, selection: Selection) -> list[Found]:
    """The runs that would be removed; raises InputError as `considered` does."""
    return [each for each, reason in considered(outputs, selection) if reason is None]


def _reason_to_leave(found: Found, is_asked_for: bool = True) -> str | None:
    """Why a run is not removed: not known to be one, or maybe whole; None where nothing speaks for
    it. is_asked_for: whether those without a result are.
    """
    home = found.home
    if any(path.is_symlink() for path in (found.folder, home, home.parent, home.parent.parent)):
        return "a link leads there"
    if not (NAME.fullmatch(home.name) and _says_so(found)):
        return "its config.yaml does not say that it is a run"
    if found.status == "dead" and not is_asked_for and _may_be_whole(found.folder):
        return "its tables may be whole, result.json alone is gone (--status dead removes it)"
    if found.status == "absent" and not (is_asked_for or _names(home) <= AT_ITS_BEGINNING):
        return "it holds numbers, provenance.json is gone (--status absent removes it)"
    return None


def _says_so(found: Found) -> bool:
    """Whether its config.yaml says that it is a run; or it was ended before it wrote any."""
    if _names(found.home) <= AT_ITS_BEGINNING - {"config.yaml"}:
        return found.study in configs()
    with suppress(InputError):
        return read_values(found.home / "config.yaml").get("study") == found.study
    return False


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _may_be_whole(folder: Path) -> bool:
    """Whether all but the result was written: its tables are whole from then on."""
    return read_provenance(folder).get("status") == "complete" and any(folder.glob("*.csv"))


def size_of(folder: Path) -> int:
    """Bytes of all files in a run's folder."""
    with suppress(OSError):
        return sum(path.lstat().st_size for path in folder.rglob("*"))
    return 0


def remove(found: Found, queued: Mapping[Path, Path]) -> str | None:
    """Remove a run's folder; why it is left, or what in it, or None when it is gone.

    queued: as of `inventory.in_queue`. Raises OSError when a file cannot be removed.
    """
    folder = found.folder
    if reason := _reason_to_leave(found):
        return reason
    if note := queued.get(found.home):
        return f"a queue may have it, says {note}: cancel job {note.stem} and remove this note"
    try:
        with lock.held(found.home, wait=False, what=found.home.name):
            if (status := status_of(folder, is_held=False)) != found.status:
                return f"it is {status} now"
            others = sorted(path.name for path in folder.iterdir() if not _is_written(path))
            _empty(folder)
    except Busy:
        return "a process works on it"
    with suppress(OSError):  # another process may have begun it anew
        folder.rmdir()
    return f"no run writes {', '.join(others)}; its own files are removed" if others else None


def _empty(folder: Path) -> None:
    """Remove what a run has written in a folder.

    A lock that others wait for goes with the rest: they notice, and make their own. The lease is
    removed by who holds it.
    """
    written = [path for path in folder.iterdir() if _is_written(path)]
    for path in sorted(written, key=lambda path: ORDER.get(path.name, 1)):
        if path.is_dir() and not path.is_symlink():
            _empty(path)
            with suppress(OSError):  # there is something of others in it
                path.rmdir()
        elif path.name != ".lease":
            path.unlink(missing_ok=True)


def _is_written(path: Path) -> bool:
    """Whether it is a run that writes this in its folder."""
    if path.is_dir() and not path.is_symlink():
        return path.name == AGAIN
    part = PART.fullmatch(path.name)
    name = part["name"] if part else path.name
    return name in (*WRITTEN, ".lease", AGAIN) or name in _tables(path.parent)


def _tables(folder: Path) -> set[str]:
    """The files of the tables that the study has, and of those that the result names."""
    home = folder.parent if folder.name == AGAIN else folder
    names: set[str] = set()
    with suppress(InputError, ImportError):  # a study that is gone
        names |= set(rows_of(home.parent.name))
    with suppress(InputError, KeyError, TypeError):
        names |= set(read_result(folder / RESULT)["tables"])
    return {f"{name}.csv" for name in names}
