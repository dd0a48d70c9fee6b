"""Benchmark of studies `bottleneck` and `symmetry`: many networks in one stack.

The straightforward way trains one network after another: an nn.Sequential, automatic
differentiation, and torch's Adam with the ridge as weight decay.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from runner.bench import Comparison, matrix_rate, median_seconds
from runner.bottleneck.recipes import RECIPES
from runner.bottleneck.stack import DepthStack
from runner.bottleneck.training import BETAS, Training, start

RIDGE, RATE, STEPS = 1e-3, 1e-3, 30
D = 20
"""Input and output dimension."""
PLAIN = RECIPES["plain"]


def straightforward(networks: list[nn.Sequential], x: Tensor, y: Tensor, steps: int) -> None:
    """Train one network after another, on samples first: x, y (R, N, D)."""
    for r, network in enumerate(networks):
        adam = torch.optim.Adam(network.parameters(), lr=RATE, betas=BETAS, weight_decay=2 * RIDGE)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            adam, lambda step: PLAIN.rate_factor(step, steps)
        )
        for _ in range(steps):
            cost = (network(x[r]) - y[r]).square().sum(1).mean()
            adam.zero_grad()
            cost.backward()
            adam.step()
            schedule.step()


def stacked(stack: DepthStack, x: Tensor, y: Tensor, steps: int) -> None:
    """The same training in one stack, on features first."""
    training = Training(stack, PLAIN, RIDGE, RATE, steps)
    batch = (x.mT.contiguous(), y.mT.contiguous())
    for _ in range(steps):
        training.advance(batch)


def modules(stack: DepthStack) -> list[nn.Sequential]:
    """Every network of a stack as a torch module with the same weights."""
    found = []
    for r in range(len(stack.depths)):
        network = stack.network(r)
        layers: list[nn.Module] = []
        for W, b in zip(network.weights, network.biases, strict=True):
            linear = nn.Linear(W.shape[1], W.shape[0])
            linear.weight.data, linear.bias.data = W.float(), b.float()
            layers += [linear, nn.ReLU()]
        found.append(nn.Sequential(*layers[:-1]).to(stack.parameters.device))
    return found


def compare(
    study: str, depths: list[int], width: int, samples: int, rate: float, device: torch.device
) -> Comparison:
    """Seconds for `STEPS` steps of all networks. rate: float32 FLOP per second."""
    depths = sorted(depths, reverse=True)
    R = len(depths)

    def new() -> DepthStack:
        stack = DepthStack(depths, width, D, D, device)
        return start(stack, list(range(R)), PLAIN, seed=0)

    x, y = torch.randn(R, samples, D, device=device), torch.randn(R, samples, D, device=device)
    stack, networks = new(), modules(new())
    stacked(stack, x, y, 5)
    straightforward(networks, x, y, 5)
    for ours, theirs in zip(modules(stack), networks, strict=True):
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    weights = sum(W.numel() for r in range(R) for W in stack.network(r).weights)
    return Comparison(
        study=study,
        work=f"{STEPS} steps, L={depths[-1]}..{depths[0]} x {R}, width {width}, N={samples}",
        straightforward=median_seconds(lambda: straightforward(networks, x, y, STEPS), 3),
        ours=median_seconds(lambda: stacked(stack, x, y, STEPS), 3),
        floor=STEPS * 6 * samples * weights / rate,
    )


def on_one_core(study: str, depths: list[int], width: int, samples: int) -> Comparison:
    """As every run: one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rate = matrix_rate(torch.float32)
        return compare(study, depths, width, samples, rate, torch.device("cpu"))
    finally:
        torch.set_num_threads(threads)


def bottleneck() -> Iterator[Comparison]:
    """Seven depths, seven equal depths; on a GPU all depths and trials of the paper's figure."""
    for depths in ([4, 6, 8, 10, 12, 15, 16], [10] * 7):
        yield on_one_core("bottleneck", depths, 50, 200)
    if torch.cuda.is_available():
        device = torch.device("cuda")
        depths = [L for L in range(4, 31, 2) for _ in range(5)]
        yield compare("bottleneck", depths, 50, 200, matrix_rate(torch.float32, "cuda"), device)


def symmetry() -> Iterator[Comparison]:
    """The three replicates of scale quick."""
    yield on_one_core("symmetry", [25] * 3, 64, 250)


BENCHES = {"bottleneck": bottleneck, "symmetry": symmetry}
"""Benchmarks by study."""
