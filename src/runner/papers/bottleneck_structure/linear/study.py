"""Study `linear`: paper D, section 3, on trained deep linear networks.

A network A = W_L ... W_1 of (n, n)-matrices minimizes `||A - T||^2 + lambda ||theta||^2` for T of
rank k with singular values between 1 and 3. At a minimum `||theta||^2` is the representation cost
`R(A; L) = L ||A||_{2/L}^{2/L}`, which is `L k + 2 log |A|_+ + ||log_+ A^T A||^2 / (2 L)` up to
O(L^-2). All numbers are computed in float64 on the CPU.
"""

from collections.abc import Iterator
from functools import reduce

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor, nn

from runner.core.studies import Context, Measured, network_name
from runner.networks import modules
from runner.networks.spectra import svd, svdvals
from runner.papers.bottleneck_structure import theory
from runner.papers.bottleneck_structure.linear.config import Linear
from runner.papers.bottleneck_structure.linear.rows import LinearNetwork
from runner.papers.bottleneck_structure.networks import Network
from runner.papers.bottleneck_structure.rows import TheoremCheck
from runner.papers.bottleneck_structure.spectra import threshold_rank
from runner.papers.bottleneck_structure.theorems import check

NOISE = 0.5
"""Standard deviation of the Gaussian entries that initialize W_l - I, times sqrt L."""
CONVERGED = 1e-13
"""Relative decrease of the loss below which L-BFGS is not restarted."""


Rows = Iterator[LinearNetwork | TheoremCheck | Measured]


def run(config: Linear, context: Context) -> Rows:
    """Train and measure every network; yield its rows."""
    total = len(config.depths) * config.replicates
    with context.progress(total, "training", unit="networks") as bar:
        for L in config.depths:
            for replicate in range(config.replicates):
                yield from measure(config, context, L, replicate)
                bar.update(depth=L)


def draw_target(config: Linear, replicate: int) -> Float[Tensor, "n n"]:
    """Return the random target matrix T of a replicate, with rank k (`config.rank`).

    Its singular vectors are random. Its singular values are uniform in [1, 3].
    """
    stream = config.stream(replicate, "target")
    n = config.width
    U, _, Vh = svd(torch.randn(n, n, generator=stream, dtype=torch.float64))
    s = 1 + 2 * torch.rand(config.rank, generator=stream, dtype=torch.float64)
    return (U[:, : config.rank] * s) @ Vh[: config.rank]


def trained(
    config: Linear, L: int, T: Float[Tensor, "n n"], replicate: int
) -> Float[Tensor, "L n n"]:
    """Return W_1 .. W_L that minimize `||W_L ... W_1 - T||^2 + lambda ||theta||^2` by L-BFGS.

    lambda is the last one of `config.ridges`. Each lambda starts from the weights of the previous
    lambda. L: depth. T: the target.
    """
    n = config.width
    stream = config.stream(replicate, f"initialisation/{L}")
    noise = torch.randn(L, n, n, generator=stream, dtype=torch.float64)
    flat = (torch.eye(n, dtype=torch.float64) + NOISE / L**0.5 * noise).flatten().numpy()

    def loss(flat: np.ndarray, ridge: float) -> tuple[float, np.ndarray]:
        theta = torch.from_numpy(flat).requires_grad_()
        total = (product(theta.view(L, n, n)) - T).square().sum() + ridge * theta.square().sum()
        (gradient,) = torch.autograd.grad(total, theta)
        return float(total.detach()), gradient.numpy()

    options = {"ftol": 0, "gtol": 1e-10}
    for ridge in config.ridges:
        lowest, left = np.inf, config.iterations
        while left > 0:  # a line search may stop early: restart until the loss does not fall
            options["maxiter"] = left
            result = minimize(loss, flat, (ridge,), "L-BFGS-B", jac=True, options=options)
            flat, left = result.x, left - max(1, result.nit)
            if result.fun >= lowest * (1 - CONVERGED):
                break
            lowest = result.fun
    return torch.from_numpy(flat).view(L, n, n)


def product(weights: Float[Tensor, "L n n"]) -> Float[Tensor, "n n"]:
    """Return the product `W_L ... W_1` of the weights W_1 .. W_L."""
    return reduce(lambda A, W: W @ A, weights)


def torch_module(config: Linear, network: str, tensors: dict[str, Tensor]) -> nn.Module:
    """Return a stored network as a torch module. tensors: its weights by name."""
    return modules.mlp(tensors, "linear")


def measure(config: Linear, context: Context, L: int, replicate: int) -> Rows:
    """Train one network; yield all its rows. L: depth."""
    T = draw_target(config, replicate)
    weights = trained(config, L, T, replicate)
    A = product(weights)
    norm, cost = weights.square().sum(), theory.representation_cost(A, L)
    k = threshold_rank(svdvals(A))
    first, second = theory.corrections(A, k)
    yield LinearNetwork(
        depth=L,
        replicate=replicate,
        parameter_norm=float(norm),
        representation_cost=float(cost),
        rank=k,
        first_correction=first,
        second_correction=second,
        train_cost=float((A - T).square().sum()),
    )
    network = Network(list(weights), [A.new_zeros(len(A))] * L)
    yield check(network, k, replicate, "linear", (cost[None], norm[None]))
    name, x = network_name("linear", depth=L, width=config.width), torch.eye(len(A)).to(A)
    named = {"x": x, **{f"W{layer}": W for layer, W in enumerate(weights, start=1)}}
    yield from context.hand_over(name, replicate, config.iterations, lambda: named)
