"""Study `rank_one`: paper D, Theorem 10.

The function f*(x) = x / sqrt(2) on the square [-sqrt 3, sqrt 3]^2 has Jacobian rank k* = 2 and E
||f*||^2 = 1. Networks of bottleneck rank 1 are trained to fit N of its values. In the middle third
of their layers only one neuron has weights. A neuron whose weights are all zero has zero gradient,
so the rank stays 1.

Theorem 10: at some x, `Theta(x, x) >= c L e^{-c_1} N^{4 - 4/k*}`, with the tangent kernel Theta and
c_1 = ||theta||^2 - L. The theorem is about networks that fit. Many networks do not fit all points,
more of them at larger N.
"""

from collections.abc import Iterator
from functools import partial
from math import lcm, sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.studies import Context, Measured, network_name
from runner.networks.spectra import svdvals
from runner.papers.bottleneck_structure import networks, theory
from runner.papers.bottleneck_structure.networks import Inputs, Network, differentiate
from runner.papers.bottleneck_structure.rank_one.config import RankOne
from runner.papers.bottleneck_structure.rank_one.rows import TrainedNetwork
from runner.papers.bottleneck_structure.recipes import Recipe
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.training import RidgeTrainer

GAIN = 1.4
"""Gain of the initial weights N(0, gain^2 / fan_in) outside the middle third."""
BIAS = 2.0
"""Initial bias of the first neuron of the bottleneck, which is active for almost all inputs."""

torch_module = networks.torch_module


def run(config: RankOne, context: Context) -> Iterator[TrainedNetwork | Measured]:
    """Train the networks of all N and replicates together; yield a row for each network.

    Measurements are in float64. The rows of the user's function `measure`, if there is one, are
    yielded, too.
    """
    order = [(N, r) for N in sorted(config.samples) for r in range(config.replicates)]
    inputs = [draw_inputs(config, N, r) for N, r in order]
    stack = DepthStack([config.depth] * len(order), config.width, 2, 2, context.device)
    for r, (N, replicate) in enumerate(order):
        stream = config.stream(replicate, f"initialisation/{N}")
        stack.load(r, rank_one_network(config.depth, config.width, stream))
    # Fit first: with the ridge from the beginning more points are not fitted.
    recipe = Recipe(GAIN, config.learning_rate, warmup=config.steps // 2, rise_end=0.6)
    # Training takes seconds: removing dead neurons would save little, and change all numbers.
    trainer = RidgeTrainer(
        stack, recipe, config.ridge, config.learning_rate, config.steps, thin=False
    )
    # One batch for sets of all sizes: points of a set occur equally often.
    again = torch.arange(lcm(*config.samples))
    x = torch.stack([x[again % len(x)] for x in inputs]).mT.float()
    batch = (x.contiguous().to(context.device), (x / sqrt(2)).contiguous().to(context.device))
    trainer.run(lambda block: [batch], context)
    with context.progress(len(order), "measuring", unit="networks") as bar:
        for r, (N, replicate) in enumerate(order):
            network = stack.network(r)
            yield measure(config, network, inputs[r], N, replicate)
            name = network_name("rank_one", samples=N, width=config.width)
            now = partial(network.traced, inputs[r])
            yield from context.hand_over(name, replicate, config.steps, now)
            bar.update(N=N)


def draw_inputs(config: RankOne, N: int, replicate: int) -> Float[Tensor, "N 2"]:
    """Return N uniform points in the square [-sqrt 3, sqrt 3]^2."""
    stream = config.stream(replicate, f"inputs/{N}")
    return sqrt(3) * (2 * torch.rand(N, 2, generator=stream, dtype=torch.float64) - 1)


def bottleneck_layers(L: int) -> range:
    """Return the hidden layers with one neuron in a network of depth L: l = L/3 + 1 .. L - L/3."""
    return range(L // 3 + 1, L - L // 3 + 1)


def rank_one_network(L: int, width: int, stream: torch.Generator) -> Network:
    """Return a random network R^2 -> R^2 whose middle layers pass one number, t -> relu(t).

    L: depth. width: number of neurons of all other hidden layers.
    """
    network = networks.random_network([2, *[width] * (L - 1), 2], GAIN, stream)
    narrow = bottleneck_layers(L)
    for layer in narrow:
        network.weights[layer - 1][1:] = 0  # W_l writes only the first neuron,
        network.weights[layer][:, 1:] = 0  # and W_{l+1} reads only this neuron
    for layer in narrow[1:]:
        network.weights[layer - 1][0, 0] = 1
    network.biases[narrow[0] - 1][0] = BIAS
    return network


def measure(config: RankOne, network: Network, x: Inputs, N: int, replicate: int) -> TrainedNetwork:
    """Return the row of one network.

    x: the N training points. Neighbors are two points that follow each other when all points are
    sorted by the bottleneck's one neuron. Tangent kernel and Jacobian are the largest ones on the
    segments between neighbors.
    """
    norm = float(network.parameter_norm())
    narrow = network.activations(x)[bottleneck_layers(network.depth)[0]]
    x_sorted = x[narrow[:, 0].argsort(stable=True)]
    fractions = torch.linspace(0, 1, config.segment_points, dtype=x.dtype)[:, None]
    segments = (x_sorted[:-1, None] + fractions * x_sorted.diff(dim=0)[:, None]).flatten(0, 1)
    derivatives = differentiate(network, segments)
    return TrainedNetwork(
        samples=N,
        replicate=replicate,
        depth=network.depth,
        parameter_norm=norm,
        excess=norm - network.depth,
        train_cost=network.cost(x, x / sqrt(2)),
        ntk_trace=float(theory.ntk_trace(network, derivatives, segments).max()),
        jacobian=float(svdvals(derivatives.jacobian)[:, 0].max()),
    )
