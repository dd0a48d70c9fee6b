"""Benchmark of study `symmetry`: all replicates at once."""

from collections.abc import Iterator

import torch

from bench.growth import Growth
from bench.stacks import compare_stacks
from bench.timing import Comparison
from runner.papers.bottleneck_structure.symmetry.config import Symmetry


def compare() -> Iterator[Comparison]:
    """Yield the comparison of the three replicates of scale quick."""
    yield compare_stacks("symmetry", [25] * 3, 64, 20, 250, torch.device("cpu"))


GROWTH = Growth(
    Symmetry(depth=10, width=64, starts=1000, steps=200, probes=200, resolution=11),
    {
        "depth": (10, 40),
        "width": (64, 256),
        "batch_size": (250, 1000),
        "probes": (500, 2000),
        "replicates": (3, 12),
    },
)
