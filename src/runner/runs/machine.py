"""The part of the machine that a run may use: its device, its threads, and its memory."""

import ctypes
import errno
import gc
import os
import re
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from runner.core.errors import InputError

MALLOPT = {-1: 512 * 2**20, -2: 64 * 2**20, -3: 32 * 2**20}
"""Options of glibc: M_TRIM_THRESHOLD, M_TOP_PAD and M_MMAP_THRESHOLD (the last at its maximum)."""

EXHAUSTED = re.compile(
    "can't allocate memory|not enough memory|bad_alloc|could not create a primitive"
    "|STATUS_ALLOC_FAILED|Storage size calculation overflowed|integer multiplication overflow"
    "|[Oo]verflow when unpacking long|array is too big|Maximum allowed dimension exceeded"
    "|cannot fit 'int' into an index|int too large to convert"
)
"""Error messages that mean full memory, although the exception has a general class. They come from
torch's allocator for the CPU, the standard library of C++, oneDNN, cuDNN and cuBLAS. The last ones
come from torch, NumPy and Python, for sizes that are too large for any memory."""

PAGES = Path("/proc/self/statm")
"""A file of Linux with the number of memory pages of this process, by kind of use."""


def device(name: str, turn: int = 0, n_jobs: int = 1) -> torch.device:
    """Return the torch device with a name: `auto`, `cpu`, `cuda` or `cuda:<number>`.

    `auto` means CUDA if there is a GPU, else the CPU. With several GPUs, `auto` distributes runs
    that compute side by side over them. turn: the run's number in a sweep. n_jobs: how many runs
    compute side by side. Raises InputError if the name is unknown or the device is missing.
    """
    number = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        if number > 1 and n_jobs != 1:
            return torch.device(f"cuda:{turn % number}")
        return torch.device("cuda" if number else "cpu")
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
    """Limit this process to the run's part of threads and memory within the block.

    threads: the number of CPU threads; None: no limit. n_jobs: how many runs share the machine; -1:
    one for each core. On Linux, a run on the CPU that needs more than its part of the memory gets
    an exception. Without this limit the system would kill the process. The measurement of the peak
    memory starts again.
    """
    keep_freed_memory()
    if threads is not None:
        torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.cuda.reset_peak_memory_stats(device)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # peaks begin anew: see `proc(5)`
    limits = _memory_limited(n_jobs) if device.type == "cpu" and PAGES.exists() else nullcontext()
    with limits, threadpool_limits(threads, user_api="blas"):  # numpy's and scipy's products
        yield


@contextmanager
def _memory_limited(n_jobs: int) -> Iterator[None]:
    """Limit the memory of this process to the run's part within the block, on Linux.

    Memory that the process has already counts. A stricter limit that is set stays. n_jobs: as in
    `shared`.
    """
    pages = [int(number) for number in PAGES.read_text().split()]
    resident, data = (pages[i] * resource.getpagesize() for i in (1, 5))
    share = memory() // (n_jobs if n_jobs > 0 else os.cpu_count() or 1)
    limit = data + max(0, share - resident)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (limit if soft < 0 else min(limit, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@contextmanager
def usual_torch() -> Iterator[None]:
    """Compute with torch's and numpy's own defaults within the block; then restore the caller's.

    A notebook or the user's `methods.py` may have changed them, and they would change numbers: the
    default dtype and device, the modes of gradients and of automatic casts, and the precision of
    products, and numpy's reaction to overflow.
    """
    dtype, precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
    strict = torch.are_deterministic_algorithms_enabled()
    kinds = [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    with ExitStack() as stack:
        stack.callback(torch.set_default_dtype, dtype)
        stack.callback(torch.set_float32_matmul_precision, precision)
        stack.callback(_make_strict, strict)
        _make_strict(False)
        torch.set_default_dtype(torch.float32)
        torch.set_float32_matmul_precision("highest")
        stack.enter_context(torch.inference_mode(mode=False))
        stack.enter_context(torch.enable_grad())
        for kind in kinds:
            stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":  # only then: it slows each operation
            stack.enter_context(torch.device("cpu"))
        stack.enter_context(np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"))
        yield


def _make_strict(strict: bool) -> None:
    """Let torch use deterministic algorithms alone, or all.

    torch's function imports its compiler, which takes 1.5 s. It is called only for a change.
    """
    if torch.are_deterministic_algorithms_enabled() != strict:
        torch.use_deterministic_algorithms(strict)


def keep_freed_memory() -> None:
    """Tell glibc to keep freed memory in this process, which makes training faster.

    Each training step asks for memory of the same sizes. Memory that was given back to the system
    must be mapped and cleared again. On systems without glibc nothing happens.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        for parameter, value in MALLOPT.items():
            mallopt(parameter, value)


def memory(root: Path = Path("/")) -> int:
    """Return how many bytes this process may use: the smallest of several limits.

    The limits are the memory of the machine, and the limits of the process's cgroup (version 2) and
    of all cgroups around it. root: the folder that has `proc` and `sys`; tests give another one.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError):  # no Linux
        path = (root / "proc/self/cgroup").read_text().partition("0::/")[2].strip()
        cgroup = root / "sys/fs/cgroup" / path
        for folder in (cgroup, *cgroup.parents):
            with suppress(OSError, ValueError):  # there is none, or it is "max"
                limits.append(int((folder / "memory.max").read_text()))
    return min(limits)


def is_exhausted(error: BaseException) -> bool:
    """Return whether an exception means that the memory of a GPU or of the host is full."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    kinds = RuntimeError | ValueError | TypeError | OverflowError
    return isinstance(error, kinds) and EXHAUSTED.search(str(error)) is not None


def free_memory() -> None:
    """Give the unused memory of an ended run back to the GPU, and collect garbage."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
