"""Benchmark of study `symmetry`: all replicates at once, and without their dead neurons."""

from collections.abc import Iterator
from functools import partial

import torch

from bench.growth import Growth
from bench.stacks import PLAIN, STEPS, compare_stacks, stacked
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.core.streams import generator
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.symmetry.config import Symmetry
from runner.papers.bottleneck_structure.training import start


def compare() -> Iterator[Comparison]:
    """Yield the comparison of the three replicates of scale quick."""
    yield compare_stacks("symmetry", [25] * 3, 64, 20, 250, torch.device("cpu"))
    yield compare_thinning()


def compare_thinning(depth: int = 25, width: int = 64, alive: int = 20) -> Comparison:
    """Return the seconds for `STEPS` steps with all neurons, and without the dead ones.

    alive: the number of neurons that are not dead in each hidden layer except the first and the
    last.
    """
    stream = generator(0, 0, "bench")
    x, y = (torch.randn(3, 250, 20, generator=stream) for _ in range(2))
    full, thinned = (start(DepthStack([depth] * 3, width, 20, 20), [0, 1, 2], PLAIN,
                           partial(generator, 0)) for _ in range(2))  # fmt: skip
    for stack in (full, thinned):
        for W, b in zip(stack.W[1:-2], stack.b[1:-2], strict=True):
            W[:, alive:], b[:, alive:] = 0, 0
    thinned.thin()
    torch.testing.assert_close(full.predict(x.mT), thinned.predict(x.mT))
    weights = sum(W.numel() for W in thinned.W)
    return Comparison(
        study="symmetry",
        work=f"{STEPS} steps, L={depth} x 3, {alive} of {width} neurons alive, N=250",
        baseline=median_seconds(lambda: stacked(full, x, y, STEPS), 3),
        ours=median_seconds(lambda: stacked(thinned, x, y, STEPS), 3),
        floor=STEPS * 6 * 250 * weights / matrix_rate(torch.float32),
    )


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
