"""How the process holds the memory that it frees."""

import ctypes
from contextlib import suppress

MALLOPT = {-1: 512 * 2**20, -2: 64 * 2**20, -3: 32 * 2**20}
"""M_TRIM_THRESHOLD, M_TOP_PAD and M_MMAP_THRESHOLD of glibc (the last at its maximum)."""


def keep_freed_memory() -> None:
    """Have glibc keep what is freed, for this process; without effect on other systems.

    Every step of a training asks for the same sizes. Given back to the system in between, their
    pages are mapped and cleared anew each time, which costs more than some of the arithmetic.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        for parameter, value in MALLOPT.items():
            mallopt(parameter, value)
