"""Benchmark of study `bn_classifier`: the scales of the classifier's first pair of layers.

The baseline solves the Khatri-Rao system by least squares.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from bench.growth import Growth
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.papers.norm_tuning.bn_classifier.config import BnClassifier
from runner.papers.norm_tuning.classifier import PIXELS
from runner.papers.norm_tuning.network import relu_network
from runner.papers.norm_tuning.solvers import solve_scales
from runner.papers.norm_tuning.theorem_1 import khatri_rao
from runner.papers.norm_tuning.theory import wide_weights


def baseline(W1: Tensor, W2: Tensor, W: Tensor) -> Tensor:
    """The scales, by a dense solver."""
    return torch.linalg.lstsq(khatri_rao(W2, W1), W.reshape(-1, 1), driver="gelsd").solution[:, 0]


def compare() -> Iterator[Comparison]:
    """Hidden widths 8 and 16; both ways must reach the target matrix to 1e-8."""
    rate = matrix_rate(torch.float64)
    for h in (8, 16):
        stream = torch.Generator().manual_seed(h)
        W = torch.randn(h, PIXELS, generator=stream, dtype=torch.float64) / PIXELS**0.5
        ((W1, W2), *_) = wide_weights(relu_network([W], [W.new_zeros(h)]), None, stream)
        work = (W1, W2, W)
        for gamma in (baseline(*work), solve_scales(*work).gamma):
            torch.testing.assert_close((W2 * gamma) @ W1, W, rtol=0, atol=1e-8)
        yield Comparison(
            study="bn_classifier",
            work=f"scales, {PIXELS} to {h}",
            baseline=median_seconds(lambda work=work: baseline(*work), 1),
            ours=median_seconds(lambda work=work: solve_scales(*work), 3),
            floor=2 / 3 * (h * PIXELS) ** 3 / rate,
            dtype="float64",
        )


GROWTH = Growth(
    BnClassifier(target_width=8, epochs=2, replicates=2, learning_rates=[0.01]),
    {"target_width": [8, 16, 32], "replicates": [2, 4, 8]},
)
