"""Study `rank_one`: paper D, Theorem 10.

The function f*(x) = x on [0, 1]^2 has Jacobian rank k* = 2. Networks of bottleneck rank 1 fit N of
its values: a linear map to one number, a chain of single neurons, and a piecewise linear curve
through all y_i. They start as exact interpolants with balanced parameters and are then trained with
a small ridge, which lowers their norm. Layers 1 .. L-2 start with one live neuron; a neuron whose
weights are all zero has zero gradient, so the rank stays 1.

Theorem 10: somewhere `Theta(x, x) >= c L e^{-c_1} N^{4 - 4/k*}`, with c_1 = ||theta||^2 - L.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from runner.bottleneck import theory
from runner.bottleneck.config import RankOne
from runner.bottleneck.networks import Network, differentiate
from runner.bottleneck.recipes import RECIPES
from runner.bottleneck.stack import DepthStack
from runner.bottleneck.training import Training
from runner.streams import generator
from runner.studies import Context, Row

DIRECTIONS = 256
"""The linear map is the one of so many random directions that separates the points best."""
PLAIN = RECIPES["plain"]


@dataclass(frozen=True)
class Metrics(Row):
    """One row per N, replicate and stage (constructed, trained)."""

    stage: str
    samples: int  # N
    replicate: int
    depth: int  # L
    parameter_norm: float  # ||theta||^2
    excess: float  # c_1 = ||theta||^2 - L
    train_cost: float  # mean ||f(x_i) - y_i||^2, in units of the variance of y
    ntk_trace: float  # largest Tr Theta(x, x) on the segment that visits all y_i
    jacobian: float  # largest ||J f(x)||_op there


def run(config: RankOne, context: Context) -> Iterator[Metrics]:
    """Construct every interpolant, train all in one stack, measure before and after."""
    order = [(N, r) for N in sorted(set(config.samples)) for r in range(config.replicates)]
    points = [draw_points(config, N, r) for N, r in order]
    networks = [interpolant(x, config.depth) for x in points]
    width = max(config.samples) - 1
    stack = DepthStack([config.depth] * len(order), width, 2, 2, context.device)
    for r, network in enumerate(networks):
        stack.load(r, network)
    training = Training(stack, PLAIN, config.ridge, config.learning_rate, config.steps)
    batch = torch.stack([_repeated(x, max(config.samples)) for x in points]).mT.float()
    batch = batch.contiguous().to(context.device)
    training.run(lambda block: [(batch, batch)], context, f"rank one L={config.depth}")
    for r, (N, replicate) in enumerate(order):
        for stage, network in (("constructed", networks[r]), ("trained", stack.network(r))):
            yield measure(config, stage, network, points[r].to(network.weights[0]), N, replicate)


def draw_points(config: RankOne, N: int, replicate: int) -> Float[Tensor, "N 2"]:
    """N uniform points in the unit square, sorted along the direction that separates them best."""
    stream = generator(config.seed, replicate, f"points/{N}")
    x = torch.rand(N, 2, generator=stream, dtype=torch.float64)
    angle = torch.pi * torch.rand(DIRECTIONS, generator=stream, dtype=torch.float64)
    heights = (x @ torch.stack([angle.cos(), angle.sin()])).sort(dim=0)
    best = heights.values.diff(dim=0).amin(0).argmax()
    return x[heights.indices[:, best]]


def _direction(x: Float[Tensor, "N 2"]) -> Float[Tensor, " 2"]:
    """The unit vector along which the given order of the points has the largest smallest gap."""
    angle = torch.pi * torch.arange(4096, dtype=x.dtype) / 2048
    candidates = torch.stack([angle.cos(), angle.sin()])
    return candidates[:, (x @ candidates).diff(dim=0).amin(0).argmax()]


def interpolant(x: Float[Tensor, "N 2"], L: int) -> Network:
    """A balanced network of depth L and rank 1 with f(x_i) = x_i, for points in a separable order.

    `t = u.x + s > 0`; a chain of ones; `relu(t - t_j)` for j < N; and the curve
    `y_1 + sum_j (slope_j - slope_{j-1}) relu(t - t_j)`.
    """
    N, u = len(x), _direction(x)
    shift = 0.1 - (x @ u).min()
    t = x @ u + shift
    slopes = x.diff(dim=0) / t.diff()[:, None]
    bends = torch.cat([slopes[:1], slopes.diff(dim=0)])

    def one(row: Float[Tensor, " n"], width: int) -> Float[Tensor, "width n"]:
        matrix = x.new_zeros(width, len(row))
        matrix[0] = row
        return matrix

    unit = torch.eye(N - 1, dtype=x.dtype)[0]
    weights = [one(u, N - 1), *[one(unit, N - 1) for _ in range(L - 3)]]
    weights += [unit.expand(N - 1, N - 1).clone(), bends.mT.clone()]
    biases = [shift * unit, *[0 * unit for _ in range(L - 3)], -t[:-1], x[0]]
    return theory.balanced(Network(weights, biases))


def _repeated(x: Float[Tensor, "N 2"], count: int) -> Float[Tensor, "count 2"]:
    """The points over and over, so that sets of all sizes fit one batch."""
    return x[torch.arange(count) % len(x)]


def measure(
    config: RankOne,
    stage: str,
    network: Network,
    x: Float[Tensor, "N 2"],
    N: int,
    replicate: int,
) -> Metrics:
    """One row: norm, fit, and the largest NTK on the segment from the first point to the last."""
    norm = float(network.parameter_norm())
    variance = (x - x.mean(0)).square().sum(1).mean()
    cost = (network.activations(x)[-1] - x).square().sum(1).mean() / variance
    segment = _segment(network.weights[0][0], x, config.segment_points)
    derivatives = differentiate(network, segment)
    return Metrics(
        stage=stage,
        samples=N,
        replicate=replicate,
        depth=network.depth,
        parameter_norm=norm,
        excess=norm - network.depth,
        train_cost=float(cost),
        ntk_trace=float(theory.ntk_trace(network, derivatives, segment).max()),
        jacobian=float(torch.linalg.svdvals(derivatives.jacobian)[:, 0].max()),
    )


def _segment(u: Float[Tensor, " 2"], x: Float[Tensor, "N 2"], count: int) -> Float[Tensor, "M 2"]:
    """Points on [x_1, x_N] with the heights `u.x` of all x_i, and `count` - 2 between
    neighbours.
    """
    t = x @ u
    inner = torch.linspace(0, 1, count, dtype=x.dtype, device=x.device)[:-1]
    heights = torch.cat([(t[:-1, None] + t.diff()[:, None] * inner).flatten(), t[-1:]])
    place = (heights - t[0]) / (t[-1] - t[0])
    return x[0] + place[:, None] * (x[-1] - x[0])
