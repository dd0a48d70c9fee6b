"""A training step that is captured once as a CUDA graph, and replayed by a GPU.

A step of small networks has hundreds of kernels that take some microseconds each. A GPU finishes a
kernel before Python can launch the next one. A graph launches all kernels at once, in the same
order on the same memory. The numbers are therefore the same.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

import torch
from torch import Tensor

EAGER_STEPS = 3
"""The number of steps before the capture. In these steps libraries choose kernels and allocate
memory."""

Result = TypeVar("Result")
"""The type of a step's result: one tensor, or None."""


class Captured(Generic[Result]):
    """A function `step(x)` of one tensor, which CUDA devices replay as a graph.

    On a CPU every call calls `step`. On CUDA only the first `EAGER_STEPS` calls do. The next call
    captures the graph; this call and all later ones replay it. All x must have the same shape and
    device. On CUDA, `step` must change tensors only in place and never wait for the device. Its
    result is None or one tensor, which the next call overwrites.
    """

    def __init__(self, step: Callable[[Tensor], Result]) -> None:
        self.step: Callable[[Tensor], Result] = step
        self.done = 0

    def __call__(self, x: Tensor) -> Result:
        """Return the result of one step."""
        if x.device.type != "cuda":
            return self.step(x)
        self.done += 1
        if self.done <= EAGER_STEPS:
            return self._eagerly(x)
        if self.done == EAGER_STEPS + 1:
            self._capture(x)
        self.x.copy_(x)
        self.graph.replay()
        return self.result

    def _eagerly(self, x: Tensor) -> Result:
        """Return the result of a step on a separate stream.

        A captured graph cannot wait for work on the default stream.
        """
        now, other = torch.cuda.current_stream(x.device), torch.cuda.Stream(x.device)
        other.wait_stream(now)
        with torch.cuda.stream(other):
            result = self.step(x)
        now.wait_stream(other)
        return result

    def _capture(self, x: Tensor) -> None:
        """Record a step without computing it; other threads may continue to use the device."""
        self.x, self.graph = x.clone(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            self.graph, stream=torch.cuda.Stream(x.device), capture_error_mode="thread_local"
        ):
            self.result = self.step(self.x)
