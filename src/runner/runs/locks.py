"""One process at a time works on a folder, on all the machines that share it.

The lock is `flock` on `.lock`: the system frees it when its owner dies, wherever that was. Where a
file system has none, or keeps it to one machine, there is a lease: `.lease` names its owner, who
refreshes it. A dead owner of the same machine is known at once, one elsewhere by its silence.
"""

import errno
import fcntl
import logging
import threading
import time
from _thread import interrupt_main
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLease, Timeout

from runner.runs.files import open_to_read

log = logging.getLogger("runner")

LEASE_SECONDS = 60.0
"""An owner that has been silent for so long has died; it refreshes its lease three times as often.

The same for all processes that share a folder."""

CLOCKS_DIFFER = 10
"""After so many times its length a silent lease is dead by the clock of any machine."""

PATIENCE = 0.1
"""Seconds until a lock counts as another's."""

NO_FLOCK = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK}

MOUNTS = Path("/proc/self/mountinfo")

OF_ONE_MACHINE = {
    "nfs": ("local_lock=flock", "local_lock=all", "nolock"),
    "nfs4": ("local_lock=flock", "local_lock=all", "nolock"),
    "lustre": ("localflock",),
    "cifs": ("nobrl",),
    "smb3": ("nobrl",),
    "beegfs": (),
    "fuse.sshfs": (),
}
"""File systems whose `flock` other machines do not see: with one of these options, or ever."""


def acquire(folder: Path, wait: bool) -> BaseFileLock:
    """The lock of the folder, held by this process; a dead owner holds nothing.

    wait: for a living owner. Raises Timeout when it is another's, OSError when the folder takes no
    files.
    """
    if not _is_of_one_machine(folder):
        lock = FileLock(folder / ".lock", fallback_to_soft=False)
        try:
            lock.acquire(timeout=-1 if wait else PATIENCE)
            return lock
        except Timeout:
            raise
        except OSError as error:
            if error.errno not in NO_FLOCK:
                raise
    _say_once()
    lease = SoftFileLease(
        folder / ".lease", lease_duration=LEASE_SECONDS, on_compromise=lambda lost: _lost(folder)
    )
    # Whether its owner lives shows within the time of a lease.
    lease.acquire(timeout=-1 if wait else LEASE_SECONDS + PATIENCE)
    return lease


def is_held(folder: Path) -> bool:
    """Whether a process works on the folder."""
    try:
        acquire(folder, wait=False).release()
    except Timeout:
        return True
    return False


def held(folder: Path) -> bool | None:
    """Whether a process works on the folder, by a look that takes nothing and writes nothing.

    None where that cannot be known at once: the lock cannot be read, or a lease is silent for
    longer than its owner may be, but not for so long that clocks that differ would not explain it.
    """
    try:
        with open_to_read(folder / ".lock") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if not isinstance(error, FileNotFoundError) and error.errno not in NO_FLOCK:
            return None
    try:
        silent = time.time() - (folder / ".lease").stat().st_mtime
    except OSError:
        return False
    if silent > CLOCKS_DIFFER * LEASE_SECONDS:
        return False
    return True if silent < LEASE_SECONDS else None


@cache
def _say_once() -> None:
    log.info("file locks do not reach other machines here: a lease is held instead")


def _lost(folder: Path) -> None:
    """Another process has taken the folder, since this one was silent: end before both write."""
    log.info("%s: the lease was lost to another process", folder)
    if threading.main_thread().is_alive():
        interrupt_main()


def _is_of_one_machine(folder: Path) -> bool:
    """Whether `flock` is known not to reach other machines there."""
    try:
        lines = MOUNTS.read_text().splitlines()
    except OSError:  # no Linux
        return False
    kind, options = file_system(folder.resolve(), lines)
    telling = OF_ONE_MACHINE.get(kind)
    return telling is not None and (not telling or bool(options & set(telling)))


def file_system(folder: Path, mounts: Iterable[str]) -> tuple[str, set[str]]:
    """Kind and options of the file system that holds a folder. mounts: lines of `mountinfo`."""
    found, kind, options = Path(), "", set()
    for line in mounts:
        place, _, rest = line.partition(" - ")
        mount, of_mount = place.split()[4:6]
        at = Path(mount.replace("\\040", " "))
        if folder.is_relative_to(at) and len(at.parts) >= len(found.parts):
            name, _, of_system = rest.split(" ", 2)
            found, kind, options = at, name, {*of_mount.split(","), *of_system.split(",")}
    return kind, options
