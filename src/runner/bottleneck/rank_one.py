"""Study `rank_one`: paper D, Theorem 10.

The function f*(x) = x / sqrt(2) on the square [-sqrt 3, sqrt 3]^2 has Jacobian rank k* = 2 and
E ||f*||^2 = 1. Networks of bottleneck rank 1 are trained to fit N of its values: the middle third
of their layers has one live neuron each. A neuron whose weights are all zero has zero gradient, so
the rank stays 1.

Theorem 10: somewhere `Theta(x, x) >= c L e^{-c_1} N^{4 - 4/k*}`, with c_1 = ||theta||^2 - L.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.bottleneck import theory
from runner.bottleneck.config import RankOne
from runner.bottleneck.networks import Network, differentiate
from runner.bottleneck.recipes import Recipe
from runner.bottleneck.stack import DepthStack
from runner.bottleneck.training import Training
from runner.streams import generator
from runner.studies import Context, Row

PLAIN = Recipe(gain=1.4, learning_rate=1e-3)
Samples = tuple[Float[Tensor, "R N _"], Float[Tensor, "R N _"]]
FIRST, LENGTH = 0.5, 3.0
"""The places on the path: equally spaced from 0.5 to 3.5, where the live neurons are on."""


@dataclass(frozen=True)
class Metrics(Row):
    """One row per N and replicate, at the end of training."""

    samples: int  # N
    replicate: int
    depth: int  # L
    parameter_norm: float  # ||theta||^2
    excess: float  # c_1 = ||theta||^2 - L
    train_cost: float  # (1/N) sum_i ||f(x_i) - y_i||^2; the zero network costs about 1
    ntk_trace: float  # largest Tr Theta(x, x) on the segments between neighbours
    jacobian: float  # largest ||J f(x)||_op there


def run(config: RankOne, context: Context) -> Iterator[Metrics]:
    """Train the networks of all N and replicates in one stack, then measure each in float64."""
    order = [(N, r) for N in sorted(set(config.samples)) for r in range(config.replicates)]
    inputs = [draw_inputs(config, N, r) for N, r in order]
    stack = DepthStack([config.depth] * len(order), config.width, 2, 2, context.device)
    if context.restored is None:
        for r, network in enumerate(pretrained(config, order, inputs, context)):
            stack.load(r, network)
    x = torch.stack([_repeated(each, max(config.samples)) for each in inputs])
    train(config, config.ridge, stack, (x, x / sqrt(2)), context, "rank one")
    for r, (N, replicate) in enumerate(order):
        network = stack.network(r)
        yield measure(config, network, inputs[r], N, replicate)


def draw_inputs(config: RankOne, N: int, replicate: int) -> Float[Tensor, "N 2"]:
    """N uniform points in the square."""
    stream = generator(config.seed, replicate, f"inputs/{N}")
    return sqrt(3) * (2 * torch.rand(N, 2, generator=stream, dtype=torch.float64) - 1)


def serpentine(x: Float[Tensor, "N 2"]) -> Int[Tensor, " N"]:
    """An order of the points, strip by strip, up and down: its length grows as N^{1 - 1/k*}."""
    strips = max(1, round(sqrt(len(x) / 2)))
    strip = ((x[:, 0] / sqrt(3) + 1) / 2 * strips).long().clamp(0, strips - 1)
    height = torch.where(strip % 2 == 0, x[:, 1], -x[:, 1])
    return (strip * 4 * sqrt(3) + height).argsort(stable=True)


def pretrained(
    config: RankOne, order: list[tuple[int, int]], inputs: list[Tensor], context: Context
) -> list[Network]:
    """Rank-1 networks whose encoder and decoder have been trained on their own, without ridge."""
    ordered = [x[serpentine(x)] for x in inputs]
    places = [torch.linspace(FIRST, FIRST + LENGTH, len(x), dtype=x.dtype)[:, None] for x in inputs]
    x, t = (
        torch.stack([_repeated(each, max(config.samples)) for each in found])
        for found in (ordered, places)
    )
    ends = config.depth // 3
    encoder = DepthStack([ends + 1] * len(order), config.width, 2, 1, context.device)
    decoder = DepthStack([ends] * len(order), config.width, 1, 2, context.device)
    for r, (N, replicate) in enumerate(order):
        stream = generator(config.seed, replicate, f"initialisation/{N}")
        encoder.initialize(r, PLAIN.gain, stream)
        decoder.initialize(r, PLAIN.gain, stream)
    alone = replace(context, checkpoint=lambda make_state: None)
    train(config, 0.0, encoder, (x, t), alone, "encoder")
    train(config, 0.0, decoder, (t, x / sqrt(2)), alone, "decoder")
    return [
        joined(encoder.network(r), decoder.network(r), config.depth, config.width)
        for r in range(len(order))
    ]


def train(
    config: RankOne, ridge: float, stack: DepthStack, data: Samples, context: Context, what: str
) -> None:
    """All steps on all samples (x, y) at once."""
    training = Training(stack, PLAIN, ridge, config.learning_rate, config.steps)
    batch = tuple(each.mT.float().contiguous().to(context.device) for each in data)
    training.run(lambda block: [batch], context, what)


def bottleneck_layers(L: int) -> range:
    """The hidden layers that have one live neuron: l = L/3 + 1 .. L - L/3."""
    return range(L // 3 + 1, L - L // 3 + 1)


def joined(encoder: Network, decoder: Network, L: int, width: int) -> Network:
    """Encoder, a chain t -> relu(t) through the middle, decoder; all hidden layers `width` wide."""

    def padded(W: Tensor, rows: int, columns: int) -> Tensor:
        wide = W.new_zeros(rows, columns)
        wide[: W.shape[0], : W.shape[1]] = W
        return wide

    one = encoder.weights[0].new_ones(1, 1)
    chain = [one] * (L - encoder.depth - decoder.depth)
    weights = [*encoder.weights, *chain, *decoder.weights]
    biases = [*encoder.biases, *[0 * one[0]] * len(chain), *decoder.biases]
    sizes = [2] + [width] * (L - 1) + [2]
    return Network(
        [padded(W, sizes[i + 1], sizes[i]) for i, W in enumerate(weights)],
        [padded(b[:, None], sizes[i + 1], 1)[:, 0] for i, b in enumerate(biases)],
    )


def _repeated(x: Float[Tensor, "N d"], count: int) -> Float[Tensor, "count d"]:
    """The points over and over, so that sets of all sizes fit one batch."""
    return x[torch.arange(count) % len(x)]


def measure(
    config: RankOne, network: Network, x: Float[Tensor, "N 2"], N: int, replicate: int
) -> Metrics:
    """One row: norm, fit, and the largest NTK between neighbours along the bottleneck."""
    norm = float(network.parameter_norm())
    activations = network.activations(x)
    order = activations[bottleneck_layers(network.depth)[0]][:, 0].argsort(stable=True)
    segments = _segments(x[order], config.segment_points)
    derivatives = differentiate(network, segments)
    return Metrics(
        samples=N,
        replicate=replicate,
        depth=network.depth,
        parameter_norm=norm,
        excess=norm - network.depth,
        train_cost=float((activations[-1] - x / sqrt(2)).square().sum(1).mean()),
        ntk_trace=float(theory.ntk_trace(network, derivatives, segments).max()),
        jacobian=float(torch.linalg.svdvals(derivatives.jacobian)[:, 0].max()),
    )


def _segments(x: Float[Tensor, "N 2"], count: int) -> Float[Tensor, "M 2"]:
    """`count` points on every segment from x_i to x_{i+1}, ends included."""
    place = torch.linspace(0, 1, count, dtype=x.dtype, device=x.device)
    return (x[:-1, None] + place[:, None] * x.diff(dim=0)[:, None]).flatten(0, 1)
