"""Study `stability`: paper D, abstract and section 4.

The paper says that learning rates of order 1/L force the tangent kernel to be of order L, and that
representations then converge as the depth L grows. Gradient descent with the learning rate c/L can
stay near a network only if the largest curvature, about `2 ||Theta(X, X)|| / N`, is at most 2 L/c.

Gradient descent starts from networks after annealed training on the task of figure 1, and from the
explicit networks of Example 20 (with gamma = 0.6), whose representations grow without bound. All
networks descend together, each with its learning rate.
"""

from collections.abc import Iterator
from math import nan

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.studies import Context
from runner.papers.bottleneck_structure import theory
from runner.papers.bottleneck_structure.latent import D_IN, D_OUT, draw_task
from runner.papers.bottleneck_structure.networks import Derivatives, Inputs, Network, differentiate
from runner.papers.bottleneck_structure.recipes import RECIPES
from runner.papers.bottleneck_structure.spectra import jacobian_ranks
from runner.papers.bottleneck_structure.stability.config import Stability
from runner.papers.bottleneck_structure.stability.rows import StableNetwork
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.training import Batch, RidgeTrainer, start

LATENT_RANK = 2
"""Rank of the task of figure 1."""
GAMMA = 0.6
"""Exponent of Example 20's epsilon = L^-gamma."""
ITERATIONS = 30
"""Steps of the power iteration for the norm of the tangent kernel."""

Key = tuple[int, int]
"""Depth and replicate."""


def run(config: Stability, context: Context) -> Iterator[StableNetwork]:
    """Train on figure 1's task, take steps of gradient descent; yield a row for each network."""
    order = [(L, r) for L in sorted(config.depths, reverse=True) for r in range(config.replicates)]
    for task, data in (("figure-1", latent_data(config)), ("example-20", example_data(config))):
        batch = tuple(torch.stack([part[r] for _, r in order]).float() for part in data)
        x, y = (part.to(context.device) for part in batch)
        if task == "figure-1":
            networks = trained(config, context, order, (x, y))
        else:
            networks = {(L, r): theory.divergent_network(L, L**-GAMMA) for L, r in order}
        after = descended(config, context, networks, (x, y))
        for rate in (0.0, *config.rates):
            kernels: dict[int, Tensor] = {}
            for L, r in reversed(order):
                network = after.get((L, r, rate), networks[L, r])
                key = {"task": task, "depth": L, "rate": rate, "replicate": r}
                inputs, targets = (part[r].mT for part in data)
                yield measure(key, network, inputs, targets, kernels)


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


def trained(
    config: Stability, context: Context, order: list[Key], batch: Batch
) -> dict[Key, Network]:
    """Return the networks after annealed training by Adam, by depth and replicate.

    order: depth and replicate of each network of the batch, deepest first. batch: inputs and
    targets.
    """
    depths, replicates = map(list, zip(*order, strict=True))
    stack = DepthStack(depths, config.width, D_IN, D_OUT, context.device)
    recipe = RECIPES["annealed"]
    start(stack, replicates, recipe, config.stream)
    trainer = RidgeTrainer(stack, recipe, config.ridge, recipe.learning_rate, config.steps)
    trainer.run(lambda block: [batch], context)
    return {key: stack.network(n) for n, key in enumerate(order)}


def descended(
    config: Stability, context: Context, networks: dict[Key, Network], batch: Batch
) -> dict[tuple[int, int, float], Network]:
    """Return the networks after gradient descent with weight decay, by depth, replicate and c.

    networks: the networks before, by depth and replicate, in the order of the batch, deepest first.
    batch: inputs and targets.
    """
    rates = config.rates
    order = [(*key, c) for key in networks for c in rates]
    x, y = (part.repeat_interleave(len(rates), 0) for part in batch)
    depths, width = [L for L, _, _ in order], max(len(n.biases[0]) for n in networks.values())
    stack = DepthStack(depths, max(width, 4), x.shape[1], y.shape[1], context.device)
    for n, (L, r, _) in enumerate(order):
        stack.load(n, networks[L, r])
    each = torch.tensor([c / L for L, _, c in order], device=context.device)
    parts = (*stack.W, *stack.b)
    step = torch.cat([each[: len(W), None, None].expand_as(W).flatten() for W in parts])
    with context.progress(config.descent_steps, "training") as bar:
        for _ in range(config.descent_steps):
            bar.update(cost=stack.descend(x, y))
            gradient = stack.gradient.add_(stack.parameters, alpha=2 * config.ridge)
            stack.parameters.addcmul_(step, gradient, value=-1)
    return {key: stack.network(n) for n, key in enumerate(order)}


def kernel_norm(network: Network, derivatives: Derivatives, x: Inputs) -> float:
    """Return the operator norm of the tangent kernel Theta(X, X), by power iteration.

    derivatives: the network's derivatives at the inputs x.

    The kernel is a (N d_out)-square matrix. Each layer adds `(J_l(x_i) J_l(x_j)^T)
    alpha_{l-1}(x_i)^T alpha_{l-1}(x_j)` with `J_l = J(alpha~_l -> f)`, the derivatives by the
    weights, as in Appendix B. The norm is nan if the kernel is zero.
    """
    layers = list(zip(network.activations(x)[:-1], derivatives.outer, strict=True))
    v = torch.ones(derivatives.jacobian.shape[:2], dtype=x.dtype)
    for _ in range(ITERATIONS):
        v = v / v.norm()
        sums = [torch.einsum("ion,io,ip->np", J, v, a) for a, J in layers]
        pairs = zip(layers, sums, strict=True)
        v = sum(torch.einsum("ion,np,ip->io", J, s, a) for (a, J), s in pairs)
    return float(v.norm())


def measure(
    key: dict,
    network: Network,
    x: Inputs,
    y: Float[Tensor, "N d_out"],
    kernels: dict[int, Tensor],
) -> StableNetwork:
    """Return the row of a network.

    key: task, depth, rate and replicate. kernels: by replicate, the kernel matrix of the middle
    layer at the next smaller depth. The function replaces the replicate's matrix by this network's
    matrix.
    """
    derivatives, L, norm = differentiate(network, x), network.depth, network.parameter_norm()
    k = max(1, int(jacobian_ranks(derivatives.jacobian).max()))
    trace = theory.ntk_trace(network, derivatives, x)
    determinant = theory.log_pseudo_determinant(derivatives.jacobian, k)
    middle = network.activations(x)[L // 2]
    kernel, before = middle @ middle.mT, kernels.get(key["replicate"])
    kernels[key["replicate"]] = kernel
    bound = theory.activation_bound(trace, norm - k * L, determinant, k)
    return StableNetwork(
        **key,
        train_cost=network.cost(x, y),
        ntk_trace=float(trace.mean()),
        curvature=2 * kernel_norm(network, derivatives, x) / len(x),
        constant=float(bound.median()) / L,
        distance=nan if before is None else float((kernel - before).norm() / before.norm()),
    )
