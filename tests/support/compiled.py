"""Compilation of all compiled loops, before memory is measured.

Compiling takes memory that later runs do not need. It happens once in a new clone.
"""

import torch

from runner.core.streams import generators
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.training import backpropagation


def compile_loops() -> None:
    """Take one training step with every engine that has compiled loops, in both precisions."""
    for dtype in (torch.float32, torch.float64):
        for normalization in ("none", "batch"):
            weights = draw("pytorch", [2, 2, 2], generators(0, 1, "x"), dtype)
            stack = MLP(*weights, normalization=normalization)
            x, labels = torch.zeros(1, 4, 2, dtype=dtype), torch.zeros(1, 4, dtype=torch.int64)
            backpropagation.step(stack, x, labels, torch.zeros(1, dtype=dtype))
