"""Let one process at a time work on a folder, on all the machines that share the folder.

A lease beside the folder names its owner, who refreshes it while it works. A dead owner on this
machine is known at once, one elsewhere by its silence. A lease asks of a file system only that a
file is created once, which NFS, Lustre, BeeGFS and sshfs promise; `flock` is missing on some, and
on others kept from the other machines without a message.
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
"""An owner on another machine that has been silent for so long is dead. All processes use it."""

PATIENCE = 0.1
"""Seconds until a living owner is known to be alive."""


def lease_path(folder: Path) -> Path:
    """Return the path of a folder's lease file.

    The file is next to the folder, not in it, since the folder may be replaced.
    """
    return folder.with_name(f".{folder.name}.lease")


def _lease(folder: Path) -> SoftFileLease:
    return SoftFileLease(lease_path(folder), lease_duration=LEASE_SECONDS)


@contextmanager
def held(folder: Path, wait: bool, what: str) -> Iterator[Callable[[], None]]:
    """Lock the folder for this process within the block.

    A lock of a dead process does not count. wait: whether to wait for a living process that has the
    lock. If false, Busy is raised instead, as soon as it is certain that this process lives. what:
    name of the run in messages.

    Yields a function without arguments. It raises Busy if this process has lost the lock because it
    did not refresh it for too long. Raises InputError if no file can be written next to the folder.
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
    """Return whether a process works on the folder; remove the lease file of a dead process.

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
