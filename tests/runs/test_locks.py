"""Whose a folder is: with flock, without it, and when the owner is dead, here or elsewhere."""

import errno
import fcntl
import multiprocessing
import os
import re
import signal
import time

import pytest
from filelock import Timeout

from runner.runs import locks

MOUNTS = """\
22 1 0:21 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime - nfs4 server:/home rw,vers=4.2,local_lock=none,addr=10.0.0.1
31 22 0:41 / /scratch rw - lustre 10.0.0.2@tcp:/scratch rw,flock
32 22 0:42 / /fast rw - lustre 10.0.0.2@tcp:/fast rw,localflock
33 22 0:43 / /old rw - nfs server:/old rw,vers=3,nolock,local_lock=all
34 30 0:44 / /home/my\\040data rw - beegfs beegfs_nodev rw
"""


@pytest.mark.parametrize(
    ("folder", "kind", "of_one_machine"),
    [
        ("/var/runs", "ext4", False),
        ("/home/me/outputs", "nfs4", False),
        ("/homeless", "ext4", False),
        ("/scratch/me", "lustre", False),
        ("/fast/me", "lustre", True),
        ("/old/me", "nfs", True),
        ("/home/my data/outputs", "beegfs", True),
    ],
)
def test_the_mounts_say_whether_locks_reach_other_machines(
    folder, kind, of_one_machine, tmp_path, monkeypatch
):
    path = locks.Path(folder)
    assert locks.file_system(path, MOUNTS.splitlines())[0] == kind
    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setattr(locks, "MOUNTS", tmp_path / "mounts")
    assert locks._is_of_one_machine(path) == of_one_machine


def without_flock(monkeypatch, number: int = errno.ENOSYS) -> None:
    def missing(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", missing)


def hold(folder, ready, forever) -> None:
    lock = locks.acquire(folder, wait=False)
    ready.set()
    assert lock.is_locked
    if forever:
        signal.pause()
    os._exit(1)  # as if killed: nothing is released


@pytest.fixture
def owner(tmp_path):
    """Starts a process that takes the folder; it dies at once, or holds it until the end."""
    context = multiprocessing.get_context("fork")
    started = []

    def start(forever: bool) -> None:
        ready = context.Event()
        process = context.Process(target=hold, args=(tmp_path, ready, forever))
        process.start()
        started.append(process)
        assert ready.wait(20)
        if not forever:
            process.join(20)

    yield start
    for process in started:
        process.kill()


def elsewhere(folder) -> None:
    """Let the lease be one of another machine, whose processes cannot be asked for."""
    lease = folder / ".lease"
    with lease.open("r+") as file:  # the same file, which its owner goes on refreshing
        text = file.read()
        name = re.search(re.escape(os.uname().nodename) + r"\S*", text)[0]
        file.seek(0)
        file.write(text.replace(name, "x" * len(name)))


def test_with_flock_a_dead_owner_holds_nothing(tmp_path, owner):
    owner(forever=False)
    assert not locks.is_held(tmp_path)
    owner(forever=True)
    assert locks.is_held(tmp_path)
    assert not (tmp_path / ".lease").exists()


@pytest.mark.parametrize("number", sorted(locks.NO_FLOCK))
def test_without_flock_there_is_a_lease_and_a_line_that_says_so(
    tmp_path, monkeypatch, caplog, number
):
    without_flock(monkeypatch, number)
    monkeypatch.setattr(locks.log, "propagate", True)
    locks._say_once.cache_clear()
    lease = locks.acquire(tmp_path, wait=False)
    assert (tmp_path / ".lease").exists() and "a lease is held instead" in caplog.text
    lease.release()
    assert not (tmp_path / ".lease").exists()


def test_other_errors_of_the_file_system_are_errors(tmp_path, monkeypatch):
    without_flock(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        locks.acquire(tmp_path, wait=False)


def test_without_flock_a_dead_owner_of_this_machine_is_known_at_once(tmp_path, owner, monkeypatch):
    without_flock(monkeypatch)
    owner(forever=False)
    start = time.monotonic()
    assert not locks.is_held(tmp_path)
    assert time.monotonic() - start < 5


def test_without_flock_a_dead_machine_is_known_by_its_silence(tmp_path, owner, monkeypatch):
    without_flock(monkeypatch)
    monkeypatch.setattr(locks, "LEASE_SECONDS", 1.5)
    owner(forever=False)
    elsewhere(tmp_path)
    start = time.monotonic()
    assert not locks.is_held(tmp_path)
    assert time.monotonic() - start >= 1.5


def test_without_flock_a_living_owner_elsewhere_keeps_its_folder(tmp_path, owner, monkeypatch):
    without_flock(monkeypatch)
    monkeypatch.setattr(locks, "LEASE_SECONDS", 1.5)
    owner(forever=True)
    elsewhere(tmp_path)
    with pytest.raises(Timeout):
        locks.acquire(tmp_path, wait=False)
