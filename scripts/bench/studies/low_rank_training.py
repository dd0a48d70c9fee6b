"""Benchmark of study `low_rank_training`: gradient descent of all gains and replicates.

The baseline is ordinary torch code: one nn.Module after another, with torch's optimizer for SGD.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from bench.growth import Growth, embedded
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining
from runner.papers.training_invariances.low_rank_training.networks import TAIL, Parameters
from runner.papers.training_invariances.low_rank_training.problem import Problem, draw_problem
from runner.papers.training_invariances.low_rank_training.study import members, starting_stack
from runner.papers.training_invariances.low_rank_training.training import (
    Decayed,
    losses_and_gradients,
)

STEPS = 20


def module(weights: list[Tensor]) -> nn.Sequential:
    """Return a fully connected network with these weights as torch's layers."""
    layers: list[nn.Module] = [nn.Flatten()]
    for number, W in enumerate(weights):
        layer = nn.Linear(W.shape[1], len(W), bias=False)
        layer.weight.data.copy_(W)
        layers += [layer] if number >= len(weights) - TAIL else [layer, nn.ReLU()]
    return nn.Sequential(*layers)


def baseline(config: LowRankTraining, start: Parameters, problem: Problem) -> list[nn.Sequential]:
    """Train one network after another; return the trained modules."""
    trained = []
    for S, (replicate, _, rate, _) in enumerate(members(config)):
        net = module([W[S] for W in start.values()])
        optimizer = torch.optim.SGD(net.parameters(), lr=rate)
        for _ in range(STEPS):
            margin = problem.y[replicate] * net(problem.x[replicate])[:, 0]
            optimizer.zero_grad()
            nn.functional.softplus(-margin).mean().backward()
            optimizer.step()
        trained.append(net)
    return trained


def stacked(config: LowRankTraining, start: Parameters, problem: Problem) -> Parameters:
    """Train all networks at once."""
    parameters = {name: W.clone() for name, W in start.items()}
    rates = torch.tensor([rate for _, _, rate, _ in members(config)])
    optimizer = Decayed("sgd", parameters, rates, torch.zeros_like(rates))
    for _ in range(STEPS):
        _, gradients = losses_and_gradients(parameters, problem.x, problem.y, "logistic")
        optimizer.step(gradients)
    return parameters


def compare() -> Iterator[Comparison]:
    """Yield comparisons for widths 32 and 128 at scale quick; weights must be equal.

    The floor includes the product of the linear tail's weights, as in the study.
    """
    flops = matrix_rate(torch.float32)
    for width in (32, 128):
        config = LowRankTraining(width=width)
        problem = draw_problem(config, embedded).to(torch.device("cpu"), torch.float32)
        image = tuple(problem.x.shape[2:])
        start = {name: W.float() for name, W in starting_stack(config, image).items()}
        work = (config, start, problem)
        ours, theirs = stacked(*work), baseline(*work)
        for S, net in enumerate(theirs):
            for W, parameter in zip(ours.values(), net.parameters(), strict=True):
                torch.testing.assert_close(W[S], parameter.detach(), rtol=1e-4, atol=1e-5)
        read = sum(W.numel() for W in list(start.values())[:-TAIL])
        yield Comparison(
            study="low_rank_training",
            work=f"width {width}, S={len(theirs)}, {STEPS} steps",
            baseline=median_seconds(lambda work=work: baseline(*work), 3),
            ours=median_seconds(lambda work=work: stacked(*work)),
            floor=6 * read * config.samples * STEPS / flops,
        )


GROWTH = Growth(
    LowRankTraining(epochs=16),
    {"width": (32, 128), "samples": (75, 300), "replicates": (5, 20), "epochs": (16, 64)},
)
