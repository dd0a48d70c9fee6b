"""Whose a folder is: of a living process, of one that died here, and of one that died elsewhere."""

import multiprocessing
import os
import re
import signal
import time

import pytest

from runner.core.errors import Busy, InputError
from runner.runs import lock


def hold(folder, ready, forever) -> None:
    with lock.held(folder, wait=False, what="this"):
        ready.set()
        if forever:
            signal.pause()
        os._exit(1)  # as if killed: nothing is released


@pytest.fixture
def owner(tmp_path):
    """Starts a process that takes the folder; it dies at once, or holds it until the end."""
    context = multiprocessing.get_context("fork")
    started = []

    def start(forever: bool) -> multiprocessing.Process:
        ready = context.Event()
        process = context.Process(target=hold, args=(tmp_path, ready, forever))
        process.start()
        started.append(process)
        assert ready.wait(20)
        if not forever:
            process.join(20)
        return process

    yield start
    for process in started:
        process.kill()


def elsewhere(folder) -> None:
    """Let the lease be one of another machine, whose processes cannot be asked for."""
    lease = lock.lease_path(folder)
    with lease.open("r+") as file:  # the same file, which its owner goes on refreshing
        text = file.read()
        name = re.search(re.escape(os.uname().nodename) + r"\S*", text)[0]
        file.seek(0)
        file.write(text.replace(name, "x" * len(name)))


def taken(folder) -> bool:
    try:
        with lock.held(folder, wait=False, what="this"):
            return True
    except Busy:
        return False


def test_a_living_owner_keeps_its_folder_and_leaves_nothing(tmp_path, owner):
    assert lock.is_held(tmp_path) is False and not any(tmp_path.iterdir())
    owner(forever=True)
    assert lock.is_held(tmp_path) is True and not taken(tmp_path)
    owner_elsewhere = tmp_path / "other"
    owner_elsewhere.mkdir()
    assert taken(owner_elsewhere) and not any(owner_elsewhere.iterdir())


def test_who_waits_gets_the_folder_of_an_owner_that_is_killed(tmp_path, owner):
    process = owner(forever=True)
    process.kill()
    process.join(20)  # one that nobody has asked for its end counts as living
    with lock.held(tmp_path, wait=True, what="this"):
        assert lock.is_held(tmp_path) is True


def test_an_owner_elsewhere_is_known_by_its_silence(tmp_path, owner, monkeypatch):
    monkeypatch.setattr(lock, "LEASE_SECONDS", 1.5)
    owner(forever=True)
    elsewhere(tmp_path)
    time.sleep(2)
    assert lock.is_held(tmp_path) is True, "it is not silent"
    lock.lease_path(tmp_path).unlink()
    owner(forever=False)
    elsewhere(tmp_path)
    start = time.monotonic()
    with lock.held(tmp_path, wait=True, what="this"):
        assert time.monotonic() - start >= 1.5


def test_who_does_not_wait_gets_the_folder_of_an_owner_that_died_elsewhere(
    tmp_path, owner, monkeypatch
):
    monkeypatch.setattr(lock, "LEASE_SECONDS", 1.5)
    owner(forever=False)
    elsewhere(tmp_path)
    assert not taken(tmp_path), "it may live"
    then = time.time() - 2 * lock.LEASE_SECONDS
    os.utime(lock.lease_path(tmp_path), (then, then))
    assert taken(tmp_path)
    owner(forever=True)
    elsewhere(tmp_path)
    os.utime(lock.lease_path(tmp_path), (then, then))
    assert not taken(tmp_path), "only its clock goes slow"


@pytest.mark.parametrize(("silent", "held"), [(0, True), (2, False)])
def test_an_owner_elsewhere_is_dead_after_the_length_of_a_lease(tmp_path, owner, silent, held):
    owner(forever=False)
    elsewhere(tmp_path)
    then = time.time() - silent * lock.LEASE_SECONDS
    os.utime(lock.lease_path(tmp_path), (then, then))
    assert lock.is_held(tmp_path) is held


def test_who_has_lost_its_lease_is_told(tmp_path, monkeypatch):
    """As a process that was stopped for longer than the lease: another has its folder by then."""
    monkeypatch.setattr(lock, "LEASE_SECONDS", 0.3)
    with lock.held(tmp_path, wait=False, what="this") as require:
        require()
        lock.lease_path(tmp_path).unlink()
        lock.lease_path(tmp_path).write_text("another's")
        time.sleep(1)
        with pytest.raises(Busy, match="this is being computed by another process"):
            require()
    assert lock.lease_path(tmp_path).read_text() == "another's"


def test_a_folder_that_takes_no_files_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "run"
    with (
        pytest.raises(InputError, match="run cannot be written"),
        lock.held(folder, wait=False, what="this"),
    ):
        pass
