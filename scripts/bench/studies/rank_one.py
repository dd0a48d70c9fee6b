"""Benchmark of study `rank_one`: all sizes and replicates at once."""

from collections.abc import Iterator

import torch

from bench.growth import Growth
from bench.stacks import compare_stacks
from bench.timing import Comparison
from runner.papers.bottleneck_structure.rank_one.config import RankOne


def compare() -> Iterator[Comparison]:
    """Yield the comparison of eight replicates of five sets of points, as at scale quick."""
    yield compare_stacks("rank_one", [12] * 40, 50, 2, 16, torch.device("cpu"))


GROWTH = Growth(
    RankOne(samples=[8], steps=1000, replicates=4),
    {"depth": (12, 48), "width": (50, 200), "samples": (8, 32), "replicates": (4, 16)},
)
