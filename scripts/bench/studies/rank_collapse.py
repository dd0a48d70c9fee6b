"""Benchmark: 5 replicates x 4 learning rates at once, compared with one network after another."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from bench.growth import Growth, lent
from bench.timing import Comparison, device, median_seconds
from runner.core.streams import generator, generators
from runner.data.datasets import Dataset, load
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.training.classification import Group, StackTrainer, loss_and_hits, sgd_step

REPLICATES, RATES, BATCH = 5, (0.01, 0.03, 0.1, 0.3), 128
SHAPES = [(width, depth) for depth in (8, 32) for width in (32, 64, 128)]


def module(data: Dataset, width: int, depth: int, normalized: bool) -> nn.Sequential:
    """Return one network as a torch module."""
    sizes = [data.train.flat().shape[1], *[width] * depth]
    layers: list[nn.Module] = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True):
        norm = [nn.BatchNorm1d(n_out)] if normalized else []
        layers += [nn.Linear(n_in, n_out), *norm, nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, data.classes)).to(data.train.labels.device)


def usual_loop(data: Dataset, networks: list[nn.Sequential], rate: float) -> None:
    """Train one epoch and measure the test accuracy, network by network, as usual in torch."""
    images = TensorDataset(data.train.flat(), data.train.labels)
    for network in networks:
        network.train()
        optimizer = torch.optim.SGD(network.parameters(), lr=rate)
        for x, labels in DataLoader(images, BATCH, shuffle=True, drop_last=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x), labels).backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            (network(data.test.flat()).argmax(1) == data.test.labels).float().mean().item()


def stack(data: Dataset, width: int, depth: int, normalized: bool) -> Group:
    """Return the group of all networks: each replicate at each learning rate."""
    sizes = [data.train.flat().shape[1], *[width] * depth, data.classes]
    weights, biases = draw("pytorch", sizes, generators(0, REPLICATES, "bench"))
    network = MLP(weights, biases, "relu", "batch" if normalized else "none")
    replicates = torch.arange(REPLICATES).repeat(len(RATES))
    rates = torch.tensor(RATES).repeat_interleave(REPLICATES)
    return Group(network.select(replicates), rates, replicates)


def stacked(data: Dataset, group: Group) -> None:
    """Train one epoch and measure the test accuracy of all networks at once."""
    context = lent(data.train.labels.device)
    for _ in StackTrainer(
        {"all": group}, data, BATCH, epochs=1, stream=partial(generator, 0), context=context
    ).run():
        pass


def require_same_step(data: Dataset, group: Group, width: int, depth: int) -> None:
    """Raise AssertionError unless one step of SGD gives the same weights as with torch's modules.

    The first network of the group is compared, in float64.
    """
    network = group.network.select(torch.zeros(1, dtype=torch.int64)).map(torch.Tensor.double)
    plain = module(data, width, depth, network.normalization == "batch").double()
    linear = [layer for layer in plain if isinstance(layer, nn.Linear)]
    for number, layer in enumerate(linear, start=1):
        layer.weight.data.copy_(network.parameters[f"W{number}"][0])
        # The stack has no biases where batch normalization removes their effect.
        layer.bias.data.copy_(network.parameters.get(f"b{number}", torch.zeros(1, 1))[0])
    x, labels = data.train.flat()[:BATCH].double(), data.train.labels[:BATCH]
    nn.functional.cross_entropy(plain(x), labels).backward()
    torch.optim.SGD(plain.parameters(), lr=RATES[0]).step()
    parameters = [tensor.requires_grad_() for tensor in network.parameters.values()]
    losses, _ = loss_and_hits(network.logits(x[None]), labels[None])
    sgd_step(losses, parameters, torch.full_like(losses.detach(), RATES[0]))
    for number, layer in enumerate(linear, start=1):
        torch.testing.assert_close(network.parameters[f"W{number}"][0], layer.weight)


def batched_rate(width: int, device: torch.device) -> float:
    """Return the FLOP per second of batched matrix products of this width, forward and backward."""
    R = REPLICATES * len(RATES)
    W = torch.randn(R, width, width, device=device)
    H = torch.randn(R, width, BATCH, device=device)

    def products() -> None:
        for _ in range(16):
            torch.bmm(W, H)
            torch.bmm(W.mT, H)
            torch.bmm(H, H.mT)

    flop = 16 * 2 * R * BATCH * width * width * 3
    return flop / median_seconds(products, 9)


def arithmetic(data: Dataset, width: int, depth: int) -> float:
    """Return the FLOP of the matrix products of one epoch of all networks."""
    features, samples = data.train.flat().shape[1], len(data.train) // BATCH * BATCH
    products = 3 * (width * width * (depth - 1) + width * data.classes) + 2 * width * features
    return 2.0 * REPLICATES * len(RATES) * samples * products


def compare() -> Iterator[Comparison]:
    """Yield comparisons on one epoch of the digits, by shape, with and without normalization."""
    data = load("digits", {}, None, seed=0).standardized().to(device())
    few = 2
    scale = REPLICATES * len(RATES) / few  # all networks take equal time
    for normalized in (False, True):
        for width, depth in SHAPES:
            networks = [module(data, width, depth, normalized) for _ in range(few)]
            loop = partial(usual_loop, data, networks, RATES[0])
            group = stack(data, width, depth, normalized)
            require_same_step(data, group, width, depth)
            ours = median_seconds(partial(stacked, data, group), 5)
            flop = arithmetic(data, width, depth)
            speed = flop / ours / 1e9
            name = "batch norm" if normalized else "plain"
            yield Comparison(
                study="rank_collapse",
                work=f"{name}, width {width}, depth {depth} (our program: {speed:.0f} GFLOP/s)",
                baseline=scale * median_seconds(loop, 3),
                ours=ours,
                floor=flop / batched_rate(width, device()),
            )


GROWTH = Growth(
    RankCollapse(depth=8, epochs=2, learning_rates=[0.1]),
    {"depth": (8, 32), "width": (64, 256), "samples": (256, 1024), "replicates": (5, 20)},
)
