"""Study `stability`: paper D, abstract and section 4.

The paper says that learning rates of order 1/L force the tangent kernel to be of order L, and that
representations then converge as the depth L grows. Gradient descent with the learning rate c/L can
stay near a network only if the largest curvature of the cost is at most 2 L/c.

Gradient descent starts from three kinds of networks: networks after annealed training by Adam on
the task of figure 1, random networks on the same task ("scratch"), and the explicit networks of
Example 20 (with gamma = 0.6), whose representations grow without bound. All networks of a kind
descend together, each with its learning rate.
"""

from collections.abc import Iterator
from math import nan

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.studies import Context
from runner.papers.bottleneck_structure import theory
from runner.papers.bottleneck_structure.latent import D_IN, D_OUT, draw_task
from runner.papers.bottleneck_structure.networks import (
    Inputs,
    Network,
    differentiate,
    random_network,
)
from runner.papers.bottleneck_structure.purposes import initialization
from runner.papers.bottleneck_structure.recipes import RECIPES
from runner.papers.bottleneck_structure.spectra import jacobian_ranks
from runner.papers.bottleneck_structure.stability.config import Stability
from runner.papers.bottleneck_structure.stability.curvature import largest_curvature
from runner.papers.bottleneck_structure.stability.rows import StableNetwork
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.training import Batch, RidgeTrainer, start

LATENT_RANK = 2
"""Rank of the task of figure 1."""
GAMMA = 0.6
"""Exponent of Example 20's epsilon = L^-gamma."""
ITERATIONS = 60
"""Steps of the power iteration for the largest curvature before gradient descent."""
MORE_ITERATIONS = 10
"""Steps with which the power iteration follows a network that descends."""
LAST, APART = 200, 21
"""The curvature after gradient descent is the median over the last LAST steps, every APART-th. The
curvature at the edge of stability alternates from step to step, so APART is odd."""

Key = tuple[int, int]
"""Depth and replicate."""
Descended = dict[tuple[int, int, float], tuple[Network, float, float]]
"""Networks with their curvature, with and without biases, by depth, replicate and c; c = 0 is
before gradient descent."""


def run(config: Stability, context: Context) -> Iterator[StableNetwork]:
    """Train on figure 1's task, take steps of gradient descent; yield a row for each network."""
    deep = [(L, r) for L in sorted(config.depths, reverse=True) for r in range(config.replicates)]
    latent, example = latent_data(config), example_data(config)
    networks = trained(config, context, deep, latent)
    yield from measured("figure-1", descended(config, context, networks, latent), latent)
    networks = untrained(config)
    from_scratch = descended(config, context, networks, latent, scratch=True)
    yield from measured("scratch", from_scratch, latent)
    networks = {(L, r): theory.divergent_network(L, L**-GAMMA) for L, r in deep}
    yield from measured("example-20", descended(config, context, networks, example), example)


def latent_data(config: Stability) -> Batch:
    """Return inputs and targets of the task of figure 1, for all replicates."""
    streams = (config.stream(r, "data") for r in range(config.replicates))
    tasks = [draw_task(LATENT_RANK, config.samples, 1, stream) for stream in streams]
    return torch.stack([task.x for task in tasks]), torch.stack([task.y for task in tasks])


def example_data(config: Stability) -> Batch:
    """Return random points (x, y, z) of [0, 1]^3 and the values of Example 20's function there."""
    streams = (config.stream(r, "points") for r in range(config.replicates))
    drawn = [torch.rand(3, config.samples, generator=s, dtype=torch.float64) for s in streams]
    x = torch.stack(drawn)
    y = x.clone()
    y[:, 2] += (x[:, 0] - x[:, 1]).relu()
    return x, y


def of_networks(order: list[Key], data: Batch, context: Context) -> tuple[Tensor, Tensor]:
    """Return inputs and targets of every network of a stack, in float32. data: by replicate."""
    x, y = (torch.stack([part[r] for _, r in order]).float() for part in data)
    return x.to(context.device), y.to(context.device)


def trained(
    config: Stability, context: Context, order: list[Key], data: Batch
) -> dict[Key, Network]:
    """Return the networks after annealed training by Adam, by depth and replicate.

    order: depth and replicate of each network, deepest first. data: inputs and targets of all
    replicates.
    """
    depths, replicates = map(list, zip(*order, strict=True))
    stack = DepthStack(depths, config.width, D_IN, D_OUT, context.device)
    recipe = RECIPES["annealed"]
    start(stack, replicates, recipe, config.stream)
    trainer = RidgeTrainer(stack, recipe, config.ridge, recipe.learning_rate, config.steps)
    batch = of_networks(order, data, context)
    trainer.run(lambda block: [batch], context)
    return {key: stack.network(n) for n, key in enumerate(order)}


def untrained(config: Stability) -> dict[Key, Network]:
    """Return random networks, by depth and replicate, deepest first.

    Their weights are the weights with which `trained` begins at the same depth.
    """
    gain, networks = RECIPES["annealed"].gain, {}
    for L in sorted(config.depths_from_scratch(), reverse=True):
        sizes = [D_IN, *[config.width] * (L - 1), D_OUT]
        for r in range(config.replicates):
            stream = config.stream(r, initialization(L))
            networks[L, r] = random_network(sizes, gain, stream)
    return networks


def descended(
    config: Stability,
    context: Context,
    networks: dict[Key, Network],
    data: Batch,
    scratch: bool = False,
) -> Descended:
    """Return the networks before and after gradient descent with weight decay.

    networks: the networks before, by depth and replicate, deepest first. data: inputs and targets
    of all replicates. scratch: whether these are random networks, which take more steps.
    """
    rates = config.rates_from_scratch() if scratch else config.rates
    steps = config.steps_from_scratch() if scratch else config.descent_steps
    order = [(*key, c) for key in networks for c in rates]
    x, y = of_networks([(L, r) for L, r, _ in order], data, context)
    depths, width = [L for L, _, _ in order], max(len(n.biases[0]) for n in networks.values())
    stack = DepthStack(depths, max(width, 4), x.shape[1], y.shape[1], context.device)
    for n, (L, r, _) in enumerate(order):
        stack.load(n, networks[L, r])
    each = torch.tensor([c / L for L, _, c in order], device=context.device)
    parts = (*stack.W, *stack.b)
    step = torch.cat([each[: len(W), None, None].expand_as(W).flatten() for W in parts])
    curvature = Curvature(stack, x)
    before = curvature.measure(ITERATIONS), curvature.of_weights()
    last = []
    with context.progress(steps, "training") as bar:
        for left in range(steps, 0, -1):
            bar.update(cost=stack.descend(x, y))
            gradient = stack.gradient.add_(stack.parameters, alpha=2 * config.ridge)
            stack.parameters.addcmul_(step, gradient, value=-1)
            if left <= LAST and (left - 1) % APART == 0:
                last.append(curvature.measure(MORE_ITERATIONS))
    after = torch.stack(last).nanmedian(0).values, curvature.of_weights()
    of = [list(zip(*(part.tolist() for part in sizes), strict=True)) for sizes in (before, after)]
    known = {(L, r, 0.0): (networks[L, r], *of[0][n]) for n, (L, r, _) in enumerate(order)}
    return known | {key: (stack.network(n), *of[1][n]) for n, key in enumerate(order)}


class Curvature:
    """The largest curvature of every network of a stack, followed while the networks descend.

    x: the inputs of every network.
    """

    def __init__(self, stack: DepthStack, x: Float[Tensor, "R d_in N"]) -> None:
        self.stack, self.x = stack, x
        self.ones = x.new_ones(len(x), stack.d_out, x.shape[-1])
        self.vectors = self.ones

    def measure(self, iterations: int) -> Float[Tensor, " R"]:
        """Return the curvature of all parameters; nan if it is infinite.

        iterations: steps of the power iteration, which continues from the last measurement.
        """
        size, v = largest_curvature(self.stack, self.x, self.vectors, iterations)
        finite = size.isfinite()
        self.vectors = torch.where(finite[:, None, None], v, self.ones)
        return torch.where(finite, size, nan)

    def of_weights(self) -> Float[Tensor, " R"]:
        """Return the curvature of the weights alone, with all biases held fixed."""
        return largest_curvature(self.stack, self.x, self.ones, ITERATIONS, bias=False)[0]


def measured(task: str, networks: Descended, data: Batch) -> Iterator[StableNetwork]:
    """Yield a row for each network, by rate and depth. data: of all replicates."""
    kernels: dict[tuple[int, float], Tensor] = {}
    for L, r, rate in sorted(networks, key=lambda key: (key[2], key[0], key[1])):
        key = {"task": task, "depth": L, "rate": rate, "replicate": r}
        x, y = (part[r].mT for part in data)
        network, curvature, without = networks[L, r, rate]
        middle = network.activations(x)[L // 2]
        kernel, before = middle @ middle.mT, kernels.get((r, rate))
        kernels[r, rate] = kernel
        distance = nan if before is None else float((kernel - before).norm() / before.norm())
        curvatures = {"curvature": curvature, "curvature_of_weights": without}
        yield StableNetwork(**key, **measures(network, x, y), **curvatures, distance=distance)


def measures(network: Network, x: Inputs, y: Float[Tensor, "N d_out"]) -> dict[str, float]:
    """Return cost, mean trace of the tangent kernel, and Theorem 7's bound divided by L."""
    derivatives, L, norm = differentiate(network, x), network.depth, network.parameter_norm()
    k = max(1, int(jacobian_ranks(derivatives.jacobian).max()))
    trace = theory.ntk_trace(network, derivatives, x)
    determinant = theory.log_pseudo_determinant(derivatives.jacobian, k)
    bound = theory.activation_bound(trace, norm - k * L, determinant, k)
    return {
        "train_cost": network.cost(x, y),
        "ntk_trace": float(trace.mean()),
        "constant": float(bound.median()) / L,
    }
