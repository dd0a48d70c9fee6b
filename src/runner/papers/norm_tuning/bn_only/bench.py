"""Benchmark of study `bn_only`: training the scales and shifts of R replicates.

The straightforward way is what a competent author writes for the paper: one nn.Module for each
replicate, a DataLoader over its samples, an optimizer, a loop.
"""

from collections.abc import Iterator
from functools import partial
from math import ceil

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from runner.bench.growth import Growth
from runner.bench.timing import Comparison, matrix_rate, median_seconds
from runner.core.streams import generator
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.norm_tuning.bn_only.online import Learner, Plan
from runner.papers.norm_tuning.bn_only.problem import draw_problem
from runner.papers.norm_tuning.bn_only.stacks import BETA2_START, NormTuned, ReluSum

STEPS = 60


class Frozen(nn.Module):
    """One frozen network of paper A with trainable scales and shifts."""

    def __init__(self, W1: torch.Tensor, W2: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("W1", W1)
        self.register_buffer("W2", W2)
        m, d = W1.shape
        self.gamma1, self.beta1 = nn.Parameter(W1.new_ones(m)), nn.Parameter(W1.new_zeros(m))
        self.gamma2 = nn.Parameter(W1.new_ones(d))
        self.beta2 = nn.Parameter(W1.new_full((d,), BETA2_START))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """f(x) (N,) for x (N, d)."""
        hidden = torch.relu(self.gamma1 * (x @ self.W1.T) + self.beta1)
        return torch.relu(self.gamma2 * (hidden @ self.W2.T) + self.beta2).sum(-1)


def straightforward(
    W1: torch.Tensor, W2: torch.Tensor, x: torch.Tensor, y: torch.Tensor, batch: int, rate: float
) -> list[Frozen]:
    """Train one replicate after another; returns the trained modules."""
    learners = []
    for replicate in range(len(W1)):
        learner = Frozen(W1[replicate], W2[replicate])
        optimizer = torch.optim.SGD(learner.parameters(), lr=rate)
        loader = DataLoader(TensorDataset(x[replicate], y[replicate]), batch_size=batch)
        for inputs, labels in loader:
            loss = nn.functional.mse_loss(learner(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        learners.append(learner)
    return learners


def stacked(
    W1: torch.Tensor, W2: torch.Tensor, x: torch.Tensor, y: torch.Tensor, batch: int, rate: float
) -> NormTuned:
    """The same training as one stack."""
    stack = NormTuned(W1, W2)
    plans, steps = [Plan("sgd", "constant", rate)] * len(W1), ceil(x.shape[1] / batch)
    learner = Learner(stack, plans, steps)
    for step in range(steps):
        part = slice(step * batch, (step + 1) * batch)
        learner.step(step, x[:, part], y[:, part])
    return stack


def compare() -> Iterator[Comparison]:
    """d = 10, 25, 30 at m = d^2, five replicates; the two ways must give the same parameters."""
    rate = matrix_rate(torch.float32)
    for d in (10, 25, 30):
        config = BnOnly(target_width=d)
        problem = draw_problem(config, range(config.replicates))
        samples = (config.replicates, STEPS * config.batch_size, d)
        x = torch.randn(samples, dtype=torch.float64, generator=generator(0, 0, "bench"))
        exact = (problem.W1, problem.W2, x, ReluSum(problem.target).predict(x))
        # In float64: a unit that rounding switches on or off would part the two ways in float32.
        learning = (config.batch_size, 1 / d)
        ours, theirs = stacked(*exact, *learning), straightforward(*exact, *learning)
        for name, value in ours.parameters.items():
            expected = torch.stack([getattr(learner, name).detach() for learner in theirs])
            torch.testing.assert_close(value, expected)
        work = (*(tensor.float() for tensor in exact), *learning)
        yield Comparison(
            study="bn_only",
            work=f"d={d} m={d * d} R={config.replicates}, {STEPS} steps",
            straightforward=median_seconds(partial(straightforward, *work), 3),
            ours=median_seconds(partial(stacked, *work)),
            floor=6 * d**3 * x.shape[0] * x.shape[1] / rate,
        )


GROWTH = Growth(
    BnOnly(target_width=10, train_samples=51_200, test_samples=20_000),
    {
        "target_width": [10, 20, 30],
        "width": [100, 200, 400],
        "replicates": [5, 10, 20],
        "train_samples": [51_200, 102_400, 204_800],
    },
)
