"""Lemma 1: a network is a tree network of signs, applied to the products of weights along paths.

For small networks only: there are exponentially many paths.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from runner.papers.invariances.flow.layers import LINEAR, Convolution, Residual, Weights, activate
from runner.papers.invariances.flow.network import Network

Path = tuple[int, ...]
"""Edges from an input to the output, by their index in the graph."""


@dataclass(frozen=True)
class Graph:
    """The computation graph of one network: edges source -> target, weights, and activations.

    Vertices are numbered from 0, the inputs first. slopes: of each vertex's activation (1: linear).
    """

    edges: list[tuple[int, int]]
    weights: Float[Tensor, " edges"]
    slopes: list[float]
    inputs: int
    output: int

    def into(self, vertex: int) -> list[int]:
        """The edges that end in a vertex."""
        return [index for index, (_, target) in enumerate(self.edges) if target == vertex]


def graph(network: Network, weights: list[Weights]) -> Graph:
    """The graph of one network; weights without the replicate axis.

    Weights that a convolution shares are on several edges; identity skips are edges of weight one.
    """
    slopes = [LINEAR] * network.layers[0].source.features
    inputs = layer = range(len(slopes))
    edges: list[tuple[int, int]] = []
    values: list[Tensor] = []

    def connect(matrix: Float[Tensor, "o i"], sources: range, targets: range) -> None:
        for row, column in (matrix != 0).nonzero().tolist():
            edges.append((sources[column], targets[row]))
            values.append(matrix[row, column])

    def add(count: int, slope: float) -> range:
        slopes.extend([slope] * count)
        return range(len(slopes) - count, len(slopes))

    for block, w in zip(network.layers, weights, strict=True):
        if isinstance(block, Residual):
            hidden = add(block.hidden, block.slope)
            following = add(block.width, LINEAR)
            connect(w["W1"], layer, hidden)
            connect(w["W2"], hidden, following)
            connect(block.skip_matrix({k: v[None] for k, v in w.items()})[0], layer, following)
        else:
            following = add(block.target.features, block.slope)
            matrix = _as_matrix(block, w) if isinstance(block, Convolution) else w["W"]
            connect(matrix, layer, following)
        layer = following
    return Graph(edges, torch.stack(values), slopes, len(inputs), layer[0])


def _as_matrix(block: Convolution, weights: Weights) -> Float[Tensor, "o i"]:
    """The convolution as a linear map: what it makes of each unit vector, before activation."""
    linear = Convolution(block.source, block.channels, block.kernel, block.stride)
    unit = torch.eye(block.source.features, dtype=weights["W"].dtype)
    return linear.forward({"W": weights["W"][None]}, unit[None])[0][0].T


def paths(network: Graph) -> Iterator[tuple[int, Path]]:
    """All maximal paths, each with the input vertex that it starts from."""

    def from_inputs_to(vertex: int, suffix: Path) -> Iterator[tuple[int, Path]]:
        if vertex < network.inputs:
            yield vertex, suffix
        for edge in network.into(vertex):
            yield from from_inputs_to(network.edges[edge][0], (edge, *suffix))

    yield from from_inputs_to(network.output, ())


def path_products(network: Graph, x: Float[Tensor, " d"]) -> dict[Path, Float[Tensor, ""]]:
    """rho(x; w), the path enumeration function (Definition 4): x_p times the weights along p."""
    return {path: x[vertex] * network.weights[list(path)].prod() for vertex, path in paths(network)}


def tree(network: Graph, products: dict[Path, Float[Tensor, ""]]) -> Float[Tensor, ""]:
    """mu(rho): the tree network of Lemma 1, whose weights are the signs of the network's.

    Its vertices are the suffixes of paths (Definition 10). Magnitudes have been pulled back to the
    leaves, which is allowed because every activation is positively homogeneous (Lemma 7), so that
    each inner edge keeps its sign alone; the edge at a leaf carries the sign of the whole path.
    """
    signs = network.weights.detach().sign()

    def value(vertex: int, suffix: Path) -> Tensor:
        if vertex < network.inputs:
            return signs[list(suffix)].prod() * products[suffix]
        terms = [
            signs[edge] * value(network.edges[edge][0], (edge, *suffix))
            for edge in network.into(vertex)
        ]
        total = torch.stack(terms).sum() if terms else torch.zeros_like(network.weights[0])
        return activate(total, network.slopes[vertex])

    return value(network.output, ())
