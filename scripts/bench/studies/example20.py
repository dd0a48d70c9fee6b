"""Benchmark of study `example20`: Jacobians of a deep network as products of masked weights."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from bench.growth import Growth
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.papers.bottleneck_structure.example20.study import SIDES, lipschitz
from runner.papers.bottleneck_structure.networks import Network
from runner.papers.bottleneck_structure.theory import divergent_network

L = 128


def plain_lipschitz(network: Network, x: Tensor) -> tuple[float, float]:
    """Return the largest Jacobian norms to and from the layers, by automatic differentiation."""
    inner, outer, activations = [1.0], [], network.activations(x)

    def through(first: int, last: int) -> Callable[[Tensor], Tensor]:
        """Return layers `first` to `last` as a function; the network's last layer has no ReLU.

        Layers are counted from 0.
        """

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
                # Jacobian by the layer's pre-activations.
                J = J * (after > 0)
            else:
                J = torch.eye(3, dtype=x.dtype)
            outer.append(float(torch.linalg.matrix_norm(J, 2)))
    return max(inner), max(outer)


def compare() -> Iterator[Comparison]:
    """Yield the comparison of Example 20's Lipschitz constants at depth 128.

    The floor is almost zero.
    """
    network = divergent_network(L, L**-0.8)
    ours, theirs = lipschitz(network), plain_lipschitz(network, SIDES)
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))
    yield Comparison(
        study="example20",
        work=f"Lipschitz constants, L={L}",
        baseline=median_seconds(lambda: plain_lipschitz(network, SIDES), 3),
        ours=median_seconds(lambda: lipschitz(network)),
        floor=len(SIDES) * 2 * 2 * 27 * L / matrix_rate(torch.float64),
        dtype="float64",
    )


GROWTH = Growth(
    Example20(depths=[512], exponents=[0.8]),
    {"depths": (512, 2048), "grid": (6, 24)},
)
