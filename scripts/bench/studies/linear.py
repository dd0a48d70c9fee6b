"""Benchmark of study `linear`: minimization of the regularized loss of one deep linear network.

The baseline is torch's L-BFGS with a line search over a list of matrices.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from bench.growth import Growth
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.papers.bottleneck_structure.linear.config import Linear
from runner.papers.bottleneck_structure.linear.study import NOISE, draw_target, product, trained

L, RIDGE = 6, 1e-2


def baseline(T: Tensor, iterations: int) -> Tensor:
    """Return W_1 .. W_L that minimize `||W_L ... W_1 - T||^2 + lambda ||theta||^2`."""
    stream = torch.Generator().manual_seed(0)
    noise = torch.randn(L, *T.shape, generator=stream, dtype=T.dtype) * NOISE / L**0.5
    weights = [W.requires_grad_() for W in torch.eye(len(T), dtype=T.dtype) + noise]
    optimizer = torch.optim.LBFGS(
        weights, max_iter=iterations, tolerance_grad=1e-10, tolerance_change=0,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure() -> Tensor:
        optimizer.zero_grad()
        cost = (product(torch.stack(weights)) - T).square().sum()
        loss = cost + RIDGE * sum(W.square().sum() for W in weights)
        loss.backward()
        return loss

    optimizer.step(closure)
    return torch.stack([W.detach() for W in weights])


def compare() -> Iterator[Comparison]:
    """Yield the comparison at depth 6. The squared norms of both solutions must be equal to 1e-5.

    The floor is one evaluation of the loss, since the number of evaluations depends on the method.
    """
    config = Linear(depths=[L], ridges=[RIDGE])
    T = draw_target(config, 0)
    steps = config.iterations
    ours, theirs = trained(config, L, T, 0), baseline(T, steps)
    torch.testing.assert_close(ours.square().sum(), theirs.square().sum(), rtol=1e-5, atol=0)
    yield Comparison(
        study="linear",
        work=f"L-BFGS to convergence, L={L}",
        baseline=median_seconds(lambda: baseline(T, steps), 3),
        ours=median_seconds(lambda: trained(config, L, T, 0), 3),
        floor=6 * L * config.width**3 / matrix_rate(torch.float64),
        dtype="float64",
    )


GROWTH = Growth(
    Linear(depths=[8], replicates=2, iterations=200),
    {"depths": (8, 32), "width": (4, 64), "iterations": (100, 400), "replicates": (2, 8)},
)
