"""Benchmarks of paper D's studies: many networks in one stack; Jacobians of a deep network.

The straightforward way trains one network after another: an nn.Sequential, automatic
differentiation, and torch's Adam with the ridge as weight decay.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from runner.bench import Comparison, matrix_rate, median_seconds
from runner.bottleneck.config import Bottleneck, Example20, RankOne, Symmetry
from runner.bottleneck.example20 import SIDES, lipschitz
from runner.bottleneck.networks import Network
from runner.bottleneck.recipes import RECIPES
from runner.bottleneck.stack import DepthStack
from runner.bottleneck.theory import divergent_network
from runner.bottleneck.training import BETAS, Training, start
from runner.growth import Growth

RIDGE, RATE, STEPS = 1e-3, 1e-3, 30
PLAIN = RECIPES["plain"]
CPU = torch.device("cpu")


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
    study: str, depths: list[int], width: int, d: int, samples: int, device: torch.device
) -> Comparison:
    """Seconds for `STEPS` steps of all networks, from R^d to R^d."""
    depths = sorted(depths, reverse=True)
    R = len(depths)

    def new() -> DepthStack:
        stack = DepthStack(depths, width, d, d, device)
        return start(stack, list(range(R)), PLAIN, seed=0)

    x, y = (torch.randn(R, samples, d, device=device) for _ in range(2))
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
        floor=STEPS * 6 * samples * weights / matrix_rate(torch.float32, device.type),
    )


def bottleneck() -> Iterator[Comparison]:
    """Seven depths, seven equal depths; on a GPU all depths and trials of the paper's figure."""
    for depths in ([4, 6, 8, 10, 12, 15, 16], [10] * 7):
        yield compare("bottleneck", depths, 50, 20, 200, CPU)
    if torch.cuda.is_available():
        depths = [L for L in range(4, 31, 2) for _ in range(5)]
        yield compare("bottleneck", depths, 50, 20, 200, torch.device("cuda"))


def symmetry() -> Iterator[Comparison]:
    """The three replicates of scale quick."""
    yield compare("symmetry", [25] * 3, 64, 20, 250, CPU)


def rank_one() -> Iterator[Comparison]:
    """Eight replicates of five sets of points, as at scale quick."""
    yield compare("rank_one", [12] * 40, 50, 2, 16, CPU)


def plain_lipschitz(network: Network, x: Tensor) -> tuple[float, float]:
    """Largest Jacobian norms up to and from every layer, each by automatic differentiation."""
    inner, outer, activations = [1.0], [], network.activations(x)

    def through(first: int, last: int) -> Callable[[Tensor], Tensor]:
        """Layers `first` to `last`, counted from 0; the last layer of all has no ReLU."""

        def forward(h: Tensor) -> Tensor:
            for layer in range(first, last + 1):
                h = h @ network.weights[layer].mT + network.biases[layer]
                h = h.relu() if layer < network.depth - 1 else h
            return h

        return forward

    for layer in range(network.depth):
        for point in range(len(x)):
            if layer < network.depth - 1:
                J = torch.autograd.functional.jacobian(through(0, layer), x[point])
                inner.append(float(torch.linalg.matrix_norm(J, 2)))
                after = activations[layer + 1][point]
                J = torch.autograd.functional.jacobian(through(layer + 1, network.depth - 1), after)
                # As seen by what the layer writes before its ReLU.
                J = J * (after > 0)
            else:
                J = torch.eye(3, dtype=x.dtype)
            outer.append(float(torch.linalg.matrix_norm(J, 2)))
    return max(inner), max(outer)


def example20() -> Iterator[Comparison]:
    """The Lipschitz constants of Example 20 at depth 128; the arithmetic is next to nothing."""
    L = 128
    network = divergent_network(L, L**-0.8)
    ours, theirs = lipschitz(network), plain_lipschitz(network, SIDES)
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))
    yield Comparison(
        study="example20",
        work=f"Lipschitz constants, L={L}",
        straightforward=median_seconds(lambda: plain_lipschitz(network, SIDES), 3),
        ours=median_seconds(lambda: lipschitz(network)),
        floor=len(SIDES) * 2 * 2 * 27 * L / matrix_rate(torch.float64),
    )


BENCHES = {
    "bottleneck": bottleneck,
    "symmetry": symmetry,
    "rank_one": rank_one,
    "example20": example20,
}
"""Benchmarks by study."""

GROWTHS = {
    "bottleneck": Growth(
        Bottleneck(depths=[10], steps=200),
        {
            "depths": [10, 20, 40],
            "width": [50, 100, 200],
            "samples": [200, 400, 800],
            "replicates": [3, 6, 12],
        },
    ),
    "symmetry": Growth(
        Symmetry(depth=10, width=64, starts=1000, steps=200, probes=200, resolution=11),
        {
            "depth": [10, 20, 40],
            "width": [64, 128, 256],
            "batch_size": [250, 500, 1000],
            "probes": [500, 1000, 2000],
            "replicates": [3, 6, 12],
        },
    ),
    "rank_one": Growth(
        RankOne(samples=[8], steps=1000, replicates=4),
        {
            "depth": [12, 24, 48],
            "width": [50, 100, 200],
            "samples": [8, 16, 32],
            "replicates": [4, 8, 16],
        },
    ),
    "example20": Growth(
        Example20(depths=[512], exponents=[0.8]),
        {"depths": [512, 1024, 2048], "grid": [6, 12, 24]},
    ),
}
