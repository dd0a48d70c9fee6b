"""What memory there is, on trees of files as Linux shows them, and the limit on a run."""

import gc
import os
import resource
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from in_process import run as run_here

from runner.core.errors import InputError
from runner.runs import machine

WHOLE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
CPU = torch.device("cpu")
STATM = Path("/proc/self/statm")
on_linux = pytest.mark.skipif(not STATM.exists(), reason="needs /proc")


def occupied() -> tuple[int, int]:
    """Bytes of this process in memory, and of its addresses for data."""
    pages = STATM.read_text().split()
    return int(pages[1]) * resource.getpagesize(), int(pages[5]) * resource.getpagesize()


LIMITS = [
    ("0::/\n", {"memory.max": "4000\n"}, 4000),
    ("0::/\n", {"memory.max": "max\n"}, WHOLE),
    ("1:name=systemd:/\n0::/a/b\n", {"a/memory.max": "5000", "a/b/memory.max": "max"}, 5000),
    ("0::/a/b\n", {"a/memory.max": "5000", "a/b/memory.max": "300"}, 300),
    ("0::/a/b\n", {"a/c/memory.max": "300\n"}, WHOLE),  # another's
    # A container sees its own cgroup as the root, and its path from the root of the host.
    ("0::/../other\n", {"memory.max": "700\n"}, 700),
    (None, {}, WHOLE),  # no Linux
]


@pytest.mark.parametrize(("own", "files", "expected"), LIMITS)
def test_the_smallest_limit_counts(own, files, expected, tmp_path):
    contents = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    contents |= {} if own is None else {"proc/self/cgroup": own}
    for name, text in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert machine.memory(tmp_path) == expected


@on_linux
@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_the_share_of_a_run_is_what_is_left_beside_the_program(monkeypatch, n_jobs):
    monkeypatch.setattr(machine, "memory", lambda: 64 * 2**30)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with machine.shared(CPU, 1, n_jobs):
        resident, data = occupied()
        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    share = 64 * 2**30 // (n_jobs if n_jobs > 0 else os.cpu_count())
    assert limit - data == pytest.approx(share - resident, abs=2**26)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@on_linux
@pytest.mark.parametrize(
    "allocate",
    [partial(torch.zeros, dtype=torch.float64), np.zeros, lambda numbers: [None] * numbers],
    ids=["torch", "np", "py"],
)
def test_beyond_the_limit_there_is_an_exception_that_is_understood(allocate, monkeypatch):
    gc.collect()  # what an earlier test left would be room below the limit
    monkeypatch.setattr(machine, "memory", lambda: occupied()[0] + 400 * 2**20)
    with machine.shared(CPU, 1), pytest.raises((RuntimeError, MemoryError)) as error:
        allocate(10_000_000)
        allocate(150_000_000)
    assert machine.is_exhausted(error.value)
    allocate(150_000_000)


@pytest.mark.parametrize(
    ("error", "is_exhausted"),
    [
        (RuntimeError("shapes do not match"), False),
        (KeyError("not enough memory"), False),
        (FileNotFoundError(2, "No such file"), False),
        (OSError(12, "Cannot allocate memory"), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("could not create a primitive"), True),
    ],
)
def test_errors_for_want_of_memory_are_known(error, is_exhausted):
    assert machine.is_exhausted(error) == is_exhausted


@on_linux
def test_a_size_that_does_not_fit_ends_in_two_lines_and_the_sweep_goes_on(
    tmp_path, monkeypatch, capsys
):
    words = ("-m", "study=linear", "scale=smoke", "device=cpu", "width=4,100000")
    assert run_here([*words, f"outputs={tmp_path}"], monkeypatch) == 1
    errors = capsys.readouterr().err
    assert "1 of 2 runs failed:" in errors and "Traceback" not in errors
    assert errors.count("ran out of memory on cpu") == errors.count("width=100000") == 1


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cpu:0"])
def test_a_device_that_is_not_known_is_named(name):
    with pytest.raises(InputError, match=f"device={name} is unknown"):
        machine.device(name)


def test_gpus_take_turns_where_runs_are_side_by_side(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [machine.device("auto", turn, 4).index for turn in range(3)] == [0, 1, 0]
    assert str(machine.device("auto", 3, 1)) == "cuda" and str(machine.device("cpu", 1, 4)) == "cpu"
    with pytest.raises(InputError, match="torch sees 2 CUDA devices"):
        machine.device("cuda:2")
