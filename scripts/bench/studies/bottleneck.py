"""Benchmark of study `bottleneck`: all depths at once, and the compiled search for low losses."""

from collections.abc import Iterator

import torch
from torch.nn.functional import relu

from bench.growth import Growth
from bench.stacks import RIDGE, compare_stacks
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.core.streams import generator
from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck
from runner.papers.bottleneck_structure.descent import descend
from runner.papers.bottleneck_structure.minima import Problem, flattened
from runner.papers.bottleneck_structure.networks import Network, random_network


def compare() -> Iterator[Comparison]:
    """Yield comparisons: seven depths, seven equal depths; on a GPU the paper's whole figure."""
    for depths in ([4, 6, 8, 10, 12, 15, 16], [10] * 7):
        yield compare_stacks("bottleneck", depths, 50, 20, 200, torch.device("cpu"))
    yield compare_descents()
    if torch.cuda.is_available():
        depths = [L for L in range(4, 31, 2) for _ in range(5)]
        yield compare_stacks("bottleneck", depths, 50, 20, 200, torch.device("cuda"))


def plain_descent(network: Network, problem: Problem, iterations: int) -> float:
    """Run torch's L-BFGS by automatic differentiation, in float64; return the loss."""
    W, b = ([p.clone().requires_grad_() for p in ps] for ps in (network.weights, network.biases))
    optimizer = torch.optim.LBFGS(
        [*W, *b],
        max_iter=iterations,
        history_size=20,
        tolerance_grad=0,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        H = problem.x
        for i, (weight, bias) in enumerate(zip(W, b, strict=True)):
            H = weight @ (relu(H) if i else H) + bias[:, None]
        value = (H - problem.y).square().sum(0).mean()
        value = value + problem.ridge * sum(p.square().sum() for p in (*W, *b))
        value.backward()
        return value

    optimizer.step(loss)
    return float(loss().detach())


def compare_descents(depth: int = 14, width: int = 10, iterations: int = 150) -> Comparison:
    """Return the seconds of one descent of a small network, by torch and compiled.

    The compiled descent also ends after `iterations`, because no decrease of its loss is enough.
    """
    stream = generator(0, 0, "bench")
    x, y = (torch.randn(20, 200, generator=stream, dtype=torch.float64) for _ in range(2))
    problem = Problem(x, y, RIDGE)
    network = random_network([20, *[width] * (depth - 1), 20], 1.2, stream)
    network = Network([W.double() for W in network.weights], [b.double() for b in network.biases])
    theta, sizes = flattened(network)
    ones = torch.cat([x, torch.ones_like(x[:1])]).numpy()

    def compiled() -> float:
        return descend(theta.clone().numpy(), sizes, ones, y.numpy(), RIDGE, 0.999)

    lowest, expected = compiled(), plain_descent(network, problem, iterations)
    assert abs(lowest / expected - 1) < 0.2, f"{lowest} is far from {expected}"
    flops = 6 * 200 * sum(W.numel() for W in network.weights) * iterations
    return Comparison(
        study="bottleneck",
        work=f"{iterations} iterations of L-BFGS, L={depth}, width {width}, N=200",
        baseline=median_seconds(lambda: plain_descent(network, problem, iterations), 3),
        ours=median_seconds(compiled, 3),
        floor=flops / matrix_rate(torch.float64),
        dtype="float64",
    )


GROWTH = Growth(
    Bottleneck(depths=[10], steps=200),
    {"depths": (10, 40), "width": (50, 200), "samples": (200, 800), "replicates": (3, 12)},
)
