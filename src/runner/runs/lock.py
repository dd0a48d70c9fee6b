"""One process at a time works on a folder, on all the machines that share it.

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
"""An owner elsewhere that has been silent for so long has died. One number for all processes."""

CLOCKS_DIFFER = 10
"""A lease that has been silent for so many times its length is dead by the clock of any machine."""

PATIENCE = 0.1
"""Seconds until a living owner is known to be one."""


def lease_path(folder: Path) -> Path:
    """Return the file of a folder's lease, which stands beside it: the folder may be replaced."""
    return folder.with_name(f".{folder.name}.lease")


def _lease(folder: Path) -> SoftFileLease:
    return SoftFileLease(lease_path(folder), lease_duration=LEASE_SECONDS)


@contextmanager
def held(folder: Path, wait: bool, what: str) -> Iterator[Callable[[], None]]:
    """Hold the folder for this process; a dead owner holds nothing.

    Gives a function that raises Busy once the lease is lost: this process was silent for so long
    that another has taken it for dead. wait: for a living owner; else Busy is raised, at once or,
    where the owner has been silent, once it is known to live. what: what is computed there. Raises
    InputError when no file can be written beside it.
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


def is_held(folder: Path) -> bool | None:
    """Return whether a process works on the folder; what a dead one has left there goes.

    None where that is unknown: the owner is silent for longer than it may be, but not for so long
    that clocks that differ would not explain it.
    """
    try:
        silent = time.time() - lease_path(folder).stat().st_mtime
    except OSError:
        return False
    try:
        _lease(folder).acquire(timeout=PATIENCE).lock.release()
    except OSError:  # a Timeout, or nothing can be written there
        if silent < LEASE_SECONDS:
            return True
        return None if silent < CLOCKS_DIFFER * LEASE_SECONDS else False
    return False
