"""Benchmark of study `invariances`: gradient descent of R networks at all learning rates.

The baseline is ordinary torch code: one nn.Module after another with torch.optim.SGD, in float64.
"""

from collections.abc import Iterator

import torch
from torch import nn

from bench.growth import Growth, embedded
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.papers.training_invariances.invariances.config import Invariances
from runner.papers.training_invariances.invariances.gradient_flow import Flow
from runner.papers.training_invariances.invariances.network import build
from runner.papers.training_invariances.invariances.problem import SIDE
from runner.papers.training_invariances.invariances.trajectory import rates, start

STEPS = 40


def module(network, theta: torch.Tensor) -> nn.Sequential:
    """Return the fully connected network with these parameters as torch's layers."""
    layers: list[nn.Module] = []
    for spec, weights in zip(network.layers, network.unpack(theta[None]), strict=True):
        layer = nn.Linear(spec.source.features, spec.width, bias=False, dtype=torch.float64)
        layer.weight.data.copy_(weights["W"][0])
        layers += [layer] if spec.is_linear else [layer, nn.ReLU()]
    return nn.Sequential(*layers)


def baseline(flow: Flow, theta: torch.Tensor) -> list[nn.Sequential]:
    """Train one network after another; return the trained modules."""
    objective, trained = flow.objective, []
    for index, rate in enumerate(flow.rates):
        net = module(objective.network, theta[index])
        optimizer = torch.optim.SGD(net.parameters(), lr=rate)
        for _ in range(STEPS):
            margin = objective.y[index] * net(objective.x[index])[:, 0]
            optimizer.zero_grad()
            nn.functional.softplus(-margin).mean().backward()
            optimizer.step()
        trained.append(net)
    return trained


def stacked(flow: Flow, theta: torch.Tensor) -> torch.Tensor:
    """Train all networks at once, and record the activation patterns."""
    flow.theta.copy_(theta)
    for _ in range(STEPS):
        flow.step(len(theta))
    return flow.theta


def compare() -> Iterator[Comparison]:
    """Yield comparisons for linear and ReLU networks at scale quick; parameters must be equal."""
    flops = matrix_rate(torch.float64)
    for architecture in ("linear", "relu_then_linear"):
        config = Invariances(architecture=architecture)
        network = build(
            architecture, config.depth, config.width, config.channels, SIDE, config.negative_slope
        )
        flow = start(config, network, torch.device("cpu"), embedded)
        theta = flow.theta.clone()
        ours, theirs = stacked(flow, theta).clone(), baseline(flow, theta)
        for row, net in zip(ours, theirs, strict=True):
            expected = torch.cat([p.detach().flatten() for p in net.parameters()])
            torch.testing.assert_close(row, expected, rtol=1e-9, atol=1e-12)
        yield Comparison(
            study="invariances",
            work=f"{architecture} S={len(rates(config))}, {STEPS} steps",
            baseline=median_seconds(lambda f=flow, t=theta: baseline(f, t), 3),
            ours=median_seconds(lambda f=flow, t=theta: stacked(f, t)),
            floor=6 * theta.numel() * config.samples * STEPS / flops,
            dtype="float64",
        )


GROWTH = Growth(
    Invariances(time=4.0, records=4),
    {"width": (16, 64), "depth": (6, 24), "samples": (32, 128), "replicates": (5, 20)},
)
