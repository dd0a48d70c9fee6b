"""Benchmark of study `norm_layers`: the scales of the normalization layers.

The baseline solves the Khatri-Rao system by least squares and computes its singular values. This
project factorizes the system once, and takes two steps of refinement.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from bench.growth import Growth
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.papers.norm_tuning.network import relu_network
from runner.papers.norm_tuning.norm_layers.config import NormLayers
from runner.papers.norm_tuning.solvers import solve_scales
from runner.papers.norm_tuning.theorem_1 import khatri_rao
from runner.papers.norm_tuning.theory import wide_weights


def baseline(W1: Tensor, W2: Tensor, W: Tensor) -> tuple[Tensor, Tensor]:
    """Return scales and condition number, each by a singular value decomposition."""
    K = khatri_rao(W2, W1)
    gamma = torch.linalg.lstsq(K, W.reshape(-1, 1), driver="gelsd").solution[:, 0]
    return gamma, torch.linalg.cond(K)


def compare() -> Iterator[Comparison]:
    """Yield comparisons for d = 20 and 30. Both programs must reach the target matrix to 1e-8."""
    rate = matrix_rate(torch.float64)
    for d in (20, 30):
        stream = torch.Generator().manual_seed(d)
        W = torch.randn(d, d, generator=stream, dtype=torch.float64) / d**0.5
        ((W1, W2),) = wide_weights(relu_network([W], [W.new_zeros(d)]), None, stream)
        work = (W1, W2, W)
        for gamma in (baseline(*work)[0], solve_scales(*work).gamma):
            torch.testing.assert_close((W2 * gamma) @ W1, W, rtol=0, atol=1e-8)
        yield Comparison(
            study="norm_layers",
            work=f"scales, d={d}",
            baseline=median_seconds(lambda work=work: baseline(*work), 1),
            ours=median_seconds(lambda work=work: solve_scales(*work), 3),
            floor=2 / 3 * d**6 / rate,
            dtype="float64",
        )


GROWTH = Growth(
    NormLayers(target_width=10, replicates=2),
    {"target_width": (10, 20), "samples": (4096, 65536), "replicates": (2, 8)},
)
