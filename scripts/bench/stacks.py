"""Benchmark that paper D's studies share: many networks trained at once.

The baseline trains one network after another: an nn.Sequential, automatic differentiation, and
torch's Adam with the ridge penalty as weight decay.
"""

from functools import partial

import torch
from torch import Tensor, nn

from bench.timing import Comparison, matrix_rate, median_seconds
from runner.core.streams import generator
from runner.papers.bottleneck_structure.recipes import RECIPES
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.training import BETAS, RidgeTrainer, start
from runner.training.schedules import cosine_decay

RIDGE, RATE, STEPS = 1e-3, 1e-3, 30
PLAIN = RECIPES["plain"]


def baseline(networks: list[nn.Sequential], x: Tensor, y: Tensor, steps: int) -> None:
    """Train one network after another. x, y: inputs and targets (R, N, D), with samples as rows."""
    for r, network in enumerate(networks):
        adam = torch.optim.Adam(network.parameters(), lr=RATE, betas=BETAS, weight_decay=2 * RIDGE)
        schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: cosine_decay(step, steps))
        for _ in range(steps):
            cost = (network(x[r]) - y[r]).square().sum(1).mean()
            adam.zero_grad()
            cost.backward()
            adam.step()
            schedule.step()


def stacked(stack: DepthStack, x: Tensor, y: Tensor, steps: int) -> None:
    """Train all networks at once. x, y: inputs and targets (R, N, D), with samples as rows."""
    trainer = RidgeTrainer(stack, PLAIN, RIDGE, RATE, steps)
    batch = (x.mT.contiguous(), y.mT.contiguous())
    for _ in range(steps):
        trainer.advance(batch)


def modules(stack: DepthStack) -> list[nn.Sequential]:
    """Return each network as a torch module with the same weights."""
    networks = []
    for r in range(len(stack.depths)):
        network = stack.network(r)
        layers: list[nn.Module] = []
        for W, b in zip(network.weights, network.biases, strict=True):
            linear = nn.Linear(W.shape[1], W.shape[0])
            linear.weight.data, linear.bias.data = W.float(), b.float()
            layers += [linear, nn.ReLU()]
        networks.append(nn.Sequential(*layers[:-1]).to(stack.parameters.device))
    return networks


def compare_stacks(
    study: str, depths: list[int], width: int, d: int, samples: int, device: torch.device
) -> Comparison:
    """Return the seconds for `STEPS` steps of all networks, by the baseline and at once.

    study: the study's name, for the table. depths: the depth of each network. d: the number of
    inputs and of outputs. samples: the number of training samples.
    """
    depths = sorted(depths, reverse=True)
    R = len(depths)

    def new() -> DepthStack:
        stack = DepthStack(depths, width, d, d, device)
        return start(stack, list(range(R)), PLAIN, partial(generator, 0))

    stream = generator(0, 0, "bench")
    x, y = (torch.randn(R, samples, d, generator=stream).to(device) for _ in range(2))
    stack, networks = new(), modules(new())
    stacked(stack, x, y, 5)
    baseline(networks, x, y, 5)
    for ours, theirs in zip(modules(stack), networks, strict=True):
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    weights = sum(W.numel() for r in range(R) for W in stack.network(r).weights)
    return Comparison(
        study=study,
        work=f"{STEPS} steps, L={depths[-1]}..{depths[0]} x {R}, width {width}, N={samples}",
        baseline=median_seconds(lambda: baseline(networks, x, y, STEPS), 3),
        ours=median_seconds(lambda: stacked(stack, x, y, STEPS), 3),
        floor=STEPS * 6 * samples * weights / matrix_rate(torch.float32, device.type),
    )
