"""Let one process at a time work on a folder, on all the machines that share the folder.

A lease is a small file next to the folder. It names its owner, the process that works on the folder
and refreshes the lease again and again. If the owner dies on this machine, this is noticed at once.
On another machine the owner counts as dead when it has not refreshed the lease for LEASE_SECONDS.

A lease needs one guarantee of a file system: a file is created only once. NFS, Lustre, BeeGFS and
sshfs give it. File locks (`flock`) are missing on some file systems, and on others they are not
seen by other machines.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import SoftFileLease, Timeout

from runner.core.errors import Busy, InputError

log = logging.getLogger("runner")

LEASE_SECONDS = 60.0
"""An owner on another machine counts as dead after so many seconds without a sign of life. All
processes must use the same number."""

PATIENCE = 0.1
"""Seconds after which a process that still holds the lock is known to be alive."""


def lease_path(folder: Path) -> Path:
    """Return the path of the lease, the file that locks a folder.

    The file is next to the folder, not in it, since the folder may be replaced.
    """
    return folder.with_name(f".{folder.name}.lease")


def _lease(folder: Path) -> SoftFileLease:
    return SoftFileLease(lease_path(folder), lease_duration=LEASE_SECONDS)


@contextmanager
def held(folder: Path, wait: bool, what: str) -> Iterator[Callable[[], None]]:
    """Lock the folder for this process within the block.

    wait: whether to wait if another living process has the lock. If false, Busy is raised as soon
    as the other process is known to live. what: the name of the run in messages.

    Yields a function without arguments. It raises Busy if this process has lost the lock, because
    it did not refresh the lock for too long. Raises InputError if no file can be written next to
    the folder.
    """
    lease, busy = _lease(folder), Busy(f"{what} is being computed by another process")

    def require() -> None:
        if lease.compromise is not None:
            raise busy

    try:
        try:
            lease.acquire(timeout=PATIENCE)
        except Timeout:
            if not wait and is_held(folder):
                raise
            log.info("%s: waiting", busy)
            lease.acquire(-1 if wait else 1.1 * LEASE_SECONDS, poll_interval=0.5)
    except Timeout:
        raise busy from None
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror})") from error
    try:
        yield require
    finally:
        lease.release()


def is_held(folder: Path) -> bool:
    """Return whether a living process works on the folder; remove the lease of a dead process.

    A process on another machine counts as dead if it has not refreshed its lease for LEASE_SECONDS.
    """
    try:
        age = time.time() - lease_path(folder).stat().st_mtime
    except OSError:
        return False
    try:
        _lease(folder).acquire(timeout=PATIENCE).lock.release()
    except OSError:  # a Timeout, or nothing can be written there
        return age < LEASE_SECONDS
    return False
