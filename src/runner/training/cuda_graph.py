"""A training step that a GPU replays: it is captured once as a CUDA graph.

A step of small networks is hundreds of kernels of some microseconds, which a GPU ends sooner than
Python can launch the next. A graph launches all of them at once, in the same order on the same
memory, so that the numbers are the same.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

import torch
from torch import Tensor

EAGER_STEPS = 3
"""Before the capture: libraries choose their kernels and take their memory."""

Result = TypeVar("Result")
"""One tensor, or nothing."""


class Captured(Generic[Result]):
    """`step(x)` for x of one shape and device; on the CPU the step itself.

    On CUDA the step must only change tensors in place and never wait for the device, and its result
    is one tensor that the next step overwrites. Its Python code runs `EAGER_STEPS + 1` times.
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
        """Return the result of a step on another stream than the default one, which no graph can
        wait for."""
        now, other = torch.cuda.current_stream(x.device), torch.cuda.Stream(x.device)
        other.wait_stream(now)
        with torch.cuda.stream(other):
            result = self.step(x)
        now.wait_stream(other)
        return result

    def _capture(self, x: Tensor) -> None:
        """Record a step, of which nothing is computed; other threads may go on using the device."""
        self.x, self.graph = x.clone(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            self.graph, stream=torch.cuda.Stream(x.device), capture_error_mode="thread_local"
        ):
            self.result = self.step(self.x)
