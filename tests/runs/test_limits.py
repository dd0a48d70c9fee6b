"""What memory there is, on trees of files as Linux shows them, and the cap on a run."""

import gc
import os
import resource
from functools import partial

import numpy as np
import pytest
import torch

from runner.runs import limits, memory

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
V1_CPU = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
V1_CONTAINER = "35 31 0:32 /docker/ab12 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"


def tree(root, own: str, mounts: str, files: dict[str, str]):
    """A root folder with what /proc says of the process and these files of the cgroups."""
    contents = {"proc/self/cgroup": own, "proc/self/mountinfo": mounts}
    for name, content in (contents | {f"sys/fs/cgroup/{n}": c for n, c in files.items()}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.mark.parametrize(
    ("own", "mounts", "files", "expected"),
    [
        ("0::/\n", V2, {"memory.max": "4000\n"}, 4000),
        ("0::/\n", V2, {"memory.max": "max\n"}, MACHINE),
        ("0::/\n", V2, {}, MACHINE),
        ("0::/a/b\n", V2, {"a/memory.max": "5000\n", "a/b/memory.max": "max\n"}, 5000),
        ("0::/a/b\n", V2, {"a/memory.max": "5000\n", "a/b/memory.max": "300\n"}, 300),
        ("0::/a/b\n", V2, {"a/c/memory.max": "300\n"}, MACHINE),  # another's
        ("0::/../other\n", V2, {"memory.max": "700\n"}, 700),
        (
            "4:memory:/job/step\n0::/\n",
            V1_CPU + V1,
            {
                "memory/memory.limit_in_bytes": "9223372036854771712\n",
                "memory/job/memory.limit_in_bytes": "6000\n",
                "memory/job/step/memory.limit_in_bytes": "9223372036854771712\n",
                "cpu/job/memory.limit_in_bytes": "1\n",
            },
            6000,
        ),
        ("3:cpu,memory:/job\n", V1, {"memory/job/memory.limit_in_bytes": "6000\n"}, 6000),
        # A container sees its own cgroup as the root, and its path from the root of the host.
        ("4:memory:/docker/ab12\n", V1_CONTAINER, {"memory/memory.limit_in_bytes": "8000"}, 8000),
        (
            "4:memory:/docker/ab12/inner\n",
            V1_CONTAINER,
            {"memory/inner/memory.limit_in_bytes": "80\n"},
            80,
        ),
        ("9:name=systemd:/\n1:cpu:/\n", V1_CPU, {}, MACHINE),
    ],
)
def test_the_smallest_limit_of_the_cgroups_counts(own, mounts, files, expected, tmp_path):
    assert limits.host_bytes(tree(tmp_path, own, mounts, files), {}) == expected


def test_another_system_has_the_memory_of_its_machine(tmp_path):
    assert limits.host_bytes(tmp_path, {}) == MACHINE


@pytest.mark.parametrize(
    ("environment", "mebibytes"),
    [
        ({"SLURM_MEM_PER_NODE": "900"}, 900),
        ({"SLURM_MEM_PER_CPU": "200", "SLURM_CPUS_ON_NODE": "4"}, 800),
        ({"SLURM_MEM_PER_CPU": "200"}, None),
        ({"SLURM_MEM_PER_GPU": "300", "SLURM_GPUS_ON_NODE": "2"}, 600),
        ({"SLURM_MEM_PER_NODE": "0"}, None),
        ({"SLURM_MEM_PER_NODE": "all of it"}, None),
    ],
)
def test_what_slurm_gives_a_job_counts(environment, mebibytes, tmp_path):
    expected = MACHINE if mebibytes is None else mebibytes * 2**20
    assert limits.host_bytes(tmp_path, environment) == expected


@pytest.mark.skipif(not limits.STATM.exists(), reason="needs /proc")
def test_what_is_available_is_shared_and_lies_beside_the_program(monkeypatch):
    monkeypatch.setattr(limits, "host_bytes", lambda: 8 * 2**30)
    occupied = limits.Occupied(addresses=3 * 2**30, resident=2**30, data=2**29)
    monkeypatch.setattr(limits.Occupied, "now", lambda: occupied)
    cpu = torch.device("cpu")
    assert memory.available(cpu) == 7 * 2**30
    assert memory.available(cpu, abreast=2) == 3 * 2**30
    monkeypatch.setattr(limits, "process_bytes", lambda: 5 * 2**30)  # ulimit -v
    assert memory.available(cpu) == 2 * 2**30


@pytest.mark.skipif(not limits.STATM.exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "allocate",
    [partial(torch.zeros, dtype=torch.float64), np.zeros, lambda numbers: [None] * numbers],
    ids=["torch", "np", "py"],
)
def test_beyond_the_cap_there_is_an_exception_that_is_understood(allocate):
    gc.collect()  # what an earlier test left would be room below the cap
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with limits.capped(limits.Occupied.now().data + 400 * 2**20):
        allocate(10_000_000)
        with pytest.raises((RuntimeError, MemoryError)) as error:
            allocate(150_000_000)
    assert memory.is_exhausted(error.value)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    allocate(150_000_000)


def test_other_errors_are_not_taken_for_want_of_memory():
    assert not memory.is_exhausted(RuntimeError("shapes do not match"))
    assert not memory.is_exhausted(ValueError("not enough memory"))
    assert not memory.is_exhausted(FileNotFoundError(2, "No such file"))
    assert memory.is_exhausted(OSError(12, "Cannot allocate memory"))
    assert memory.is_exhausted(torch.OutOfMemoryError("CUDA out of memory"))
