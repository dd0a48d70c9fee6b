"""Study `fits_by_rank`: a control for paper D's statements on fits of rank 1.

Study `rank_one` finds that networks of rank 1 fit many points more rarely than few points. Many
points may be harder to fit at any rank. So here networks of rank 1 and 2 are trained on the same
points in the same way, and differ only in the number of neurons in the middle third of their
layers. The function f*(x) = x / sqrt(2) on the square [-sqrt 3, sqrt 3]^2 has rank 2.
"""

from collections.abc import Iterator
from functools import partial
from math import lcm, sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.studies import Context, Measured, network_name
from runner.papers.bottleneck_structure.fits_by_rank.config import FitsByRank
from runner.papers.bottleneck_structure.fits_by_rank.rows import NarrowNetwork
from runner.papers.bottleneck_structure.networks import Network, random_network
from runner.papers.bottleneck_structure.recipes import Recipe
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.training import RidgeTrainer

GAIN = 1.4
"""Gain of the initial weights N(0, gain^2 / fan_in) outside the middle third."""
BIAS = 2.0
"""Initial bias of the first layer of the middle third: its neurons are active for most inputs."""


def run(config: FitsByRank, context: Context) -> Iterator[NarrowNetwork | Measured]:
    """Train the networks of all ranks, N and replicates together; yield a row for each network.

    The rows of the user's function `measure`, if there is one, are yielded, too.
    """
    order = [
        (k, N, r) for k in config.ranks for N in config.samples for r in range(config.replicates)
    ]
    points = {(N, r): draw_points(config, N, r) for _, N, r in order}
    stack = DepthStack([config.depth] * len(order), config.width, 2, 2, context.device)
    for n, (k, N, r) in enumerate(order):
        stream = config.stream(r, f"initialisation/{N}")
        stack.load(n, narrow_network(config.depth, config.width, k, stream))
    # Fit first: with the ridge from the beginning more points are not fitted.
    recipe = Recipe(GAIN, config.learning_rate, warmup=config.steps // 2, rise_end=0.6)
    trainer = RidgeTrainer(
        stack, recipe, config.ridge, config.learning_rate, config.steps, thin=False
    )
    # One batch for sets of all sizes: points of a set occur equally often.
    again = torch.arange(lcm(*config.samples))
    x = torch.stack([points[N, r][again % N] for _, N, r in order]).mT.float()
    batch = (x.contiguous().to(context.device), (x / sqrt(2)).contiguous().to(context.device))
    trainer.run(lambda block: [batch], context)
    for n, (k, N, r) in enumerate(order):
        network, inputs = stack.network(n), points[N, r]
        norm, error = float(network.parameter_norm()), N * network.cost(inputs, inputs / sqrt(2))
        yield NarrowNetwork(k, N, r, parameter_norm=norm, error=error)
        name = network_name(f"rank_{k}", samples=N, width=config.width)
        now = partial(network.traced, inputs)
        yield from context.hand_over(name, r, config.steps, now)


def draw_points(config: FitsByRank, N: int, replicate: int) -> Float[Tensor, "N 2"]:
    """Return N uniform points in the square [-sqrt 3, sqrt 3]^2."""
    stream = config.stream(replicate, f"inputs/{N}")
    return sqrt(3) * (2 * torch.rand(N, 2, generator=stream, dtype=torch.float64) - 1)


def narrow_network(L: int, width: int, rank: int, stream: torch.Generator) -> Network:
    """Return a random network R^2 -> R^2 whose middle third passes `rank` numbers, t -> relu(t).

    Networks of all ranks from one stream have the same weights elsewhere. A neuron whose weights
    are all zero has zero gradient, so the rank stays at most `rank`. L: depth. width: number of
    neurons of all other hidden layers.
    """
    network = random_network([2, *[width] * (L - 1), 2], GAIN, stream)
    narrow = range(L // 3 + 1, L - L // 3 + 1)
    for layer in narrow:
        network.weights[layer - 1][rank:] = 0  # W_l writes only the first neurons,
        network.weights[layer][:, rank:] = 0  # and W_{l+1} reads only these
    for layer in narrow[1:]:
        network.weights[layer - 1][:rank, :rank] = torch.eye(rank, dtype=torch.float64)
    network.biases[narrow[0] - 1][:rank] = BIAS
    return network
