"""Benchmark of study `constructions`: the scales of Theorem 1 at m = 2 d^2.

The baseline forms the Khatri-Rao matrix of the first d^2 hidden units and calls a dense LU solver,
O(d^6). This project never forms the matrix, and takes about 100 iterations of O(d^4) at any d. It
returns the solution of least norm, and the condition number of all m columns; LU does not.
"""

from collections.abc import Iterator

import torch

from bench.growth import Growth
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.papers.norm_tuning.constructions.config import Constructions
from runner.papers.norm_tuning.constructions.study import random_target
from runner.papers.norm_tuning.solvers import structured_lsmr
from runner.papers.norm_tuning.theorem_1 import khatri_rao
from runner.papers.norm_tuning.theory import wide_weights

WIDTHS = (30, 50, 70, 100)


def baseline(W1: torch.Tensor, W2: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the scales of the first d^2 units by LU, and zero for the others."""
    n = target.numel()
    gamma = torch.zeros(len(W1), dtype=W1.dtype)
    gamma[:n] = torch.linalg.solve(khatri_rao(W2[:, :n], W1[:n]), target.reshape(-1))
    return gamma


def compare_width(d: int, rate: float) -> Comparison:
    """Return the comparison at one width. Both programs must reach the target matrix to 1e-8.

    d: the width. rate: float64 FLOP per second of the machine.
    """
    stream = torch.Generator().manual_seed(d)
    target = random_target(d, 1, stream, d)
    ((W1, W2),) = wide_weights(target, 2 * d * d, stream)
    work = (W1, W2, target.layers[0].weight)
    gamma, iterations, _ = structured_lsmr(*work)
    for scales in (gamma, baseline(*work)):
        torch.testing.assert_close((W2 * scales) @ W1, work[2], rtol=0, atol=1e-8)
    return Comparison(
        study="constructions",
        work=f"d={d} m={2 * d * d}, {iterations} iterations",
        baseline=median_seconds(lambda: baseline(*work), 1),
        ours=median_seconds(lambda: structured_lsmr(*work), 3),
        floor=iterations * 8 * d**4 / rate,
        dtype="float64",
    )


def compare() -> Iterator[Comparison]:
    """Yield comparisons for d = 30 .. 100."""
    rate = matrix_rate(torch.float64)
    for d in WIDTHS:
        yield compare_width(d, rate)


GROWTH = Growth(
    Constructions(target_width=20, width=800, depth=2, replicates=2),
    {
        "target_width": (10, 20),
        "width": (800, 3200),
        "depth": (2, 8),
        "replicates": (2, 8),
        "points": (500, 2000),
    },
)
