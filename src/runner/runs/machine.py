"""What a run may use of the machine: its device, its threads, and its share of the memory."""

import ctypes
import errno
import gc
import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from runner.core.errors import InputError

MALLOPT = {-1: 512 * 2**20, -2: 64 * 2**20, -3: 32 * 2**20}
"""M_TRIM_THRESHOLD, M_TOP_PAD and M_MMAP_THRESHOLD of glibc (the last at its maximum)."""

EXHAUSTED = re.compile(
    "can't allocate memory|not enough memory|bad_alloc|could not create a primitive"
    "|STATUS_ALLOC_FAILED|Storage size calculation overflowed|integer multiplication overflow"
    "|[Oo]verflow when unpacking long|array is too big|Maximum allowed dimension exceeded"
    "|cannot fit 'int' into an index|int too large to convert"
)
"""How those complain that have no separate exception: torch's allocators for the CPU, the
standard library of C++, oneDNN, cuDNN, cuBLAS; and torch, NumPy and Python at sizes that no number
of bytes has."""

PAGES = Path("/proc/self/statm")
"""Where Linux tells the pages of this process: of addresses, in memory, ..., of data."""

MEMORY_OF_SLURM = {"NODE": None, "CPU": "SLURM_CPUS_ON_NODE", "GPU": "SLURM_GPUS_ON_NODE"}
"""What `SLURM_MEM_PER_...` counts, in MiB, and the variable that says how many there are."""


def device(name: str, turn: int = 0, n_jobs: int = 1) -> torch.device:
    """Return the device of that name; `auto` is CUDA where there is one, the CPU otherwise.

    turn: number of the run; n_jobs: how many run side by side, which several GPUs take in turns.
    Raises InputError when the name is unknown or the device is not there.
    """
    number = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        side_by_side = number > 1 and n_jobs != 1
        kind = "cuda" if number else "cpu"
        return torch.device(f"cuda:{turn % number}" if side_by_side else kind)
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,4})?", name):
        raise InputError(f"device={name} is unknown: choose from auto, cpu, cuda, cuda:<number>")
    kind, _, index = name.partition(":")
    if kind == "cuda" and int(index or 0) >= number:
        raise InputError(
            f"device={name} is not there: torch sees {number} CUDA devices."
            " Use device=auto or device=cpu."
        )
    return torch.device(name)


@contextmanager
def shared(device: torch.device, threads: int | None, n_jobs: int = 1) -> Iterator[None]:
    """Compute within with so many threads and this run's share of the memory, and measure its peak.

    threads: None for as many as there are; n_jobs: how many runs share the machine, -1: as many as
    it has cores. Where the CPU of a Linux computes, what goes beyond the share raises an exception:
    a system that promises more memory than it has would kill the process at a later time.
    """
    keep_freed_memory()
    if threads is not None:
        torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.cuda.reset_peak_memory_stats(device)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # peaks begin anew: see `proc(5)`
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if device.type == "cpu" and PAGES.exists():
        _, resident, *_, data, _ = (int(n) * resource.getpagesize() for n in _text(PAGES).split())
        share = memory() // (n_jobs if n_jobs > 0 else os.cpu_count() or 1)
        limit = data + max(0, share - resident)
        resource.setrlimit(resource.RLIMIT_DATA, (limit if soft < 0 else min(limit, soft), hard))
    try:
        with threadpool_limits(threads, user_api="blas"):  # numpy's and scipy's products
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def keep_freed_memory() -> None:
    """Have glibc keep what is freed, for this process; without effect on other systems.

    Every step of a training asks for the same sizes. Given back to the system in between, their
    pages are mapped and cleared anew each time, which costs more than some of the arithmetic.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        for parameter, value in MALLOPT.items():
            mallopt(parameter, value)


def memory(root: Path = Path("/")) -> int:
    """Return the bytes that the processes of this job may fill together: the smallest limit.

    There are those of the machine, of the process's cgroup (version 2) and the cgroups around it,
    and of Slurm's job on this node. root: the folder that holds `proc` and `sys`.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    own = root / "sys/fs/cgroup" / _text(root / "proc/self/cgroup").partition("0::/")[2].strip()
    for cgroup in (own, *own.parents):
        with suppress(ValueError):  # there is none, or it is "max"
            limits.append(int(_text(cgroup / "memory.max")))
    for unit, count in MEMORY_OF_SLURM.items():
        with suppress(KeyError, ValueError):
            size = int(os.environ[f"SLURM_MEM_PER_{unit}"])  # 0: all that the node has
            limits.append(size * 2**20 * int(os.environ[count] if count else 1) or limits[0])
    return min(limits)


def _text(path: Path) -> str:
    """Return the content of a file; nothing if it does not exist."""
    return path.read_text() if path.exists() else ""


def is_exhausted(error: BaseException) -> bool:
    """Return whether the error says that there is no memory left, on a GPU or on the host."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    kinds = RuntimeError | ValueError | TypeError | OverflowError
    return isinstance(error, kinds) and EXHAUSTED.search(str(error)) is not None


def free_memory() -> None:
    """Give back what a run that is over has left."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
