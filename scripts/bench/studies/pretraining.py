"""Benchmark: the authors' pre-training of figure 4, for all replicates at once and one by one."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import nn

from bench.growth import Growth
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.core.streams import generators
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank.ascent import descend
from runner.papers.batch_norm_rank.pretraining.config import Pretraining

REPLICATES, WIDTH, SAMPLES, STEPS, STEP = 5, 64, 64, 40, 0.001


def networks(depth: int) -> MLP:
    """Return networks with PyTorch's initialization, and with as many inputs as units."""
    sizes = [WIDTH] * (depth + 1) + [10]
    weights, biases = draw("pytorch", sizes, generators(0, REPLICATES, "bench"))
    return MLP(weights, biases)


def stacked(start: MLP, X: torch.Tensor) -> MLP:
    """Pre-train all networks at once; return them. X: their inputs."""
    network = start.map(lambda tensor: tensor)
    for _ in range(STEPS):
        descend(network, X, network.depth, -0.5, STEP, activated=True)
    return network


def baseline(start: MLP, X: torch.Tensor) -> list[list[nn.Linear]]:
    """Pre-train one network after another with torch's optimizer; return the layers of each.

    X: the inputs of all networks.
    """
    trained = []
    for r in range(len(start)):
        layers = []
        for number in range(1, start.depth + 1):
            layer = nn.Linear(WIDTH, WIDTH, dtype=X.dtype)
            layer.weight.data.copy_(start.parameters[f"W{number}"][r])
            layer.bias.data.copy_(start.parameters[f"b{number}"][r])
            layers.append(layer)
        network = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))
        optimizer = torch.optim.SGD(network.parameters(), lr=STEP)
        for _ in range(STEPS):
            optimizer.zero_grad()
            H = network(X[r].mT)
            M = H @ H.mT
            (torch.norm(M) / torch.trace(M)).backward()
            optimizer.step()
        trained.append(layers)
    return trained


def require_same_descent(start: MLP, X: torch.Tensor) -> None:
    """Raise AssertionError unless both programs give equal weights, in float64."""
    work = (start.map(torch.Tensor.double), X.double())
    for r, layers in enumerate(baseline(*work)):
        W = stacked(*work).parameters[f"W{len(layers)}"][r]
        torch.testing.assert_close(W, layers[-1].weight.detach(), rtol=1e-6, atol=1e-9)


def compare() -> Iterator[Comparison]:
    """Yield comparisons for depths 8 and 32."""
    stream = generators(0, 1, "bench")[0]
    X = torch.randn(REPLICATES, WIDTH, SAMPLES, generator=stream)
    rate = matrix_rate(torch.float32)
    for depth in (8, 32):
        work = (networks(depth), X)
        require_same_descent(*work)
        yield Comparison(
            study="pretraining",
            work=f"descent, R={REPLICATES}, width {WIDTH}, depth {depth}, {STEPS} steps",
            baseline=median_seconds(partial(baseline, *work), 3),
            ours=median_seconds(partial(stacked, *work)),
            floor=REPLICATES * STEPS * depth * 3 * 2 * WIDTH**2 * SAMPLES / rate,
        )


GROWTH = Growth(
    Pretraining(
        script="fig4",
        depth=8,
        epochs=1,
        learning_rates=[0.01],
        batch_norm_rates=[0.01],
        methods=["vanilla", "pretrained"],
        pretraining_steps=[25],
    ),
    {"depth": (8, 32), "width": (64, 256), "samples": (256, 1024), "replicates": (5, 20)},
)
