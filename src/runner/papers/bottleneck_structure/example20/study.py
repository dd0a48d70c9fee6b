"""Study `example20`: paper D, Appendix D.1.

The study builds explicit networks for f(x, y, z) = (x, y, z + relu(x - y)) on [0, 1]^3. Their
squared norm minus 3 L tends to 0, so R^(1)(f) = 0, while their middle representations grow without
bound.
"""

from collections.abc import Iterator

import torch

from runner.core.studies import Context
from runner.networks.spectra import operator_norm
from runner.papers.bottleneck_structure import theory
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.papers.bottleneck_structure.example20.rows import ExampleNetwork
from runner.papers.bottleneck_structure.networks import Network, differentiate

SIDES = torch.tensor([[0.2, 0.6, 0.5], [0.6, 0.2, 0.5]], dtype=torch.float64)
"""One point on each side of the kink of f."""


def run(config: Example20, context: Context) -> Iterator[ExampleNetwork]:
    """Build and measure every network; yield its row."""
    total = sum(config.depths) * len(config.exponents)
    with context.progress(total, "measuring", unit="layers") as bar:
        for L in config.depths:
            for exponent in config.exponents:
                yield measure(config, L, exponent)
                bar.update(L, depth=L)


def measure(config: Example20, L: int, exponent: float) -> ExampleNetwork:
    """Return the row of one network: the distance from f, and Lipschitz constants.

    The Lipschitz constants are measured on both sides of the kink of f. L: depth. exponent: g of
    epsilon = L^-g.
    """
    epsilon = L**-exponent
    network = theory.divergent_network(L, epsilon)
    side = torch.linspace(0, 1, config.grid, dtype=torch.float64)
    x = torch.cartesian_prod(side, side, side)
    expected = x.clone()
    expected[:, 2] += (x[:, 0] - x[:, 1]).relu()
    inner, outer = lipschitz(network)
    return ExampleNetwork(
        depth=L,
        exponent=exponent,
        epsilon=epsilon,
        parameter_norm=float(network.parameter_norm()),
        excess=theory.divergent_excess(L, epsilon),
        max_error=float((network.activations(x)[-1] - expected).abs().max()),
        middle_lipschitz=inner,
        lipschitz=max(inner, outer),
    )


def lipschitz(network: Network) -> tuple[float, float]:
    """Return the largest Jacobian norms: from the input to a layer, from a layer to the output."""
    derivatives = differentiate(network, SIDES)
    halves = (derivatives.inner, derivatives.outer)
    return tuple(max(float(operator_norm(J).max()) for J in half) for half in halves)
