"""Benchmark of study `bottleneck`: all depths at once."""

from collections.abc import Iterator

import torch

from bench.growth import Growth
from bench.stacks import compare_stacks
from bench.timing import Comparison
from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck


def compare() -> Iterator[Comparison]:
    """Yield comparisons: seven depths, seven equal depths; on a GPU the paper's whole figure."""
    for depths in ([4, 6, 8, 10, 12, 15, 16], [10] * 7):
        yield compare_stacks("bottleneck", depths, 50, 20, 200, torch.device("cpu"))
    if torch.cuda.is_available():
        depths = [L for L in range(4, 31, 2) for _ in range(5)]
        yield compare_stacks("bottleneck", depths, 50, 20, 200, torch.device("cuda"))


GROWTH = Growth(
    Bottleneck(depths=[10], steps=200),
    {"depths": (10, 40), "width": (50, 200), "samples": (200, 800), "replicates": (3, 12)},
)
