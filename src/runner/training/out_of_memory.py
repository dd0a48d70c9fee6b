"""What to say when a minibatch does not fit into memory."""

import gc
from collections.abc import Callable

import torch

MESSAGES = ("can't allocate memory", "not enough memory", "STATUS_ALLOC_FAILED")
"""How those complain that have no exception of their own: torch's allocators for the CPU, cuDNN,
cuBLAS."""


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether the error says that there is no memory left, on a GPU or on the host."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return any(message in str(error) for message in MESSAGES)


def fitting_batch_size(attempt: Callable[[int], object], too_large: int) -> int | None:
    """The first of `too_large / 2`, `/ 4`, ... that `attempt` gets through; None if none does.

    attempt: does the work for that batch size and raises what torch raises if it cannot. Sizes
    below two are not tried: batch normalization needs two samples.
    """
    size = too_large // 2
    while size >= 2:
        if _fits(attempt, size):
            return size
        size //= 2
    return None


def _fits(attempt: Callable[[int], object], size: int) -> bool:
    release()
    try:
        attempt(size)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return False
    return True


def release() -> None:
    """Give back what failed work has left in memory."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
