"""Lemma 1 of paper C: a network equals a tree with weights +1 and -1, applied to path products.

A path product is an input times all weights along a path to the output. The number of paths is
exponential in the depth, so only small networks are compared with their tree. The results are in
the table `decomposition`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from runner.papers.training_invariances.invariances.config import Invariances
from runner.papers.training_invariances.invariances.gradient_flow import Flow
from runner.papers.training_invariances.invariances.graphs import Dag
from runner.papers.training_invariances.invariances.layers import (
    LINEAR,
    Convolution,
    Dense,
    Residual,
    Weights,
    activate,
)
from runner.papers.training_invariances.invariances.network import Network
from runner.papers.training_invariances.invariances.rows import Decomposition
from runner.papers.training_invariances.invariances.trajectory import Trajectory, networks

MOST_WEIGHTS, MOST_PATHS = 300, 3000
"""Largest numbers of weights and paths of networks whose paths are listed for Lemma 1."""

LISTED = 2
"""Number of examples on which f and its tree network are compared."""


Path = tuple[int, ...]
"""Edges from an input to the output, by their index in the graph."""


@dataclass(frozen=True)
class Graph:
    """The computation graph of one network: vertices, edges with weights, and activations.

    Vertices are numbered from 0, the inputs first, and every edge leads to a higher number.
    Networks with biases have a constant 1 as last input.

    - edges: source and target of each edge.
    - weights: weight of each edge.
    - slopes: slope of each vertex's activation for negative inputs (0: ReLU, 1: linear).
    - inputs: number of inputs.
    - output: number of the output vertex.
    """

    edges: list[tuple[int, int]]
    weights: Float[Tensor, " edges"]
    slopes: list[float]
    inputs: int
    output: int

    @cached_property
    def into(self) -> list[list[int]]:
        """Return for each vertex the indices of the edges that lead to it."""
        incoming: list[list[int]] = [[] for _ in self.slopes]
        for index, (_, target) in enumerate(self.edges):
            incoming[target].append(index)
        return incoming

    def count(self) -> int:
        """Return the number of paths from the inputs to the output."""
        paths = [1] * self.inputs + [0] * (len(self.slopes) - self.inputs)
        for vertex in range(self.inputs, len(self.slopes)):
            paths[vertex] = sum(paths[self.edges[edge][0]] for edge in self.into[vertex])
        return paths[self.output]


def graph_of(network: Network | Dag, theta: Float[Tensor, "R P"], index: int) -> Graph:
    """Return the computation graph of one of many networks.

    network: the architecture. theta: parameters of all networks, a row for each. index: number of
    the network.
    """
    if not isinstance(network, Dag):
        return graph(network, network.unpack(theta[index]))
    targets, sources = network.edges[index].nonzero().T
    edges = list(zip(sources.tolist(), targets.tolist(), strict=True))
    slopes = network.slopes[index].tolist()
    A = network.adjacency(theta)[index]
    return Graph(edges, A[targets, sources], slopes, network.inputs, len(slopes) - 1)


def graph(network: Network, weights: list[Weights]) -> Graph:
    """Return the computation graph of one layered network.

    weights: the weights of each layer, without the axis of replicates. A weight that a convolution
    uses several times is on several edges. Identity skips are edges of weight one.
    """
    slopes = [LINEAR] * network.layers[0].source.features
    layer = range(len(slopes))
    constant = len(slopes)
    if any("b" in w for w in weights):
        slopes.append(LINEAR)
    inputs = range(len(slopes))
    edges: list[tuple[int, int]] = []
    values: list[Tensor] = []

    def connect(matrix: Float[Tensor, "o i"], sources: range, targets: range) -> None:
        """Add an edge for each nonzero entry of a matrix."""
        for row, column in (matrix != 0).nonzero().tolist():
            edges.append((sources[column], targets[row]))
            values.append(matrix[row, column])

    def add(count: int, slope: float) -> range:
        """Add vertices whose activation has one slope; return their numbers."""
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
            connect(_as_matrix(block, w), layer, following)
            if "b" in w:
                connect(w["b"][:, None], range(constant, constant + 1), following)
        layer = following
    return Graph(edges, torch.stack(values), slopes, len(inputs), layer[0])


def _as_matrix(block: Dense | Convolution, weights: Weights) -> Float[Tensor, "o i"]:
    """Return a block as a matrix: its columns are the images of unit vectors, before activation."""
    if isinstance(block, Dense):
        return weights["W"]
    linear = replace(block, slope=LINEAR)
    unit = torch.eye(block.source.features, dtype=torch.float64)
    return linear.forward({name: w[None] for name, w in weights.items()}, unit[None])[0][0].T


def paths(network: Graph) -> Iterator[tuple[int, Path]]:
    """Yield each path from an input to the output: the number of the input, and the edges."""

    def from_inputs_to(vertex: int, suffix: Path) -> Iterator[tuple[int, Path]]:
        """Yield the paths from an input to a vertex, followed by the edges `suffix`."""
        if vertex < network.inputs:
            yield vertex, suffix
        for edge in network.into[vertex]:
            yield from from_inputs_to(network.edges[edge][0], (edge, *suffix))

    yield from from_inputs_to(network.output, ())


def path_products(network: Graph, x: Float[Tensor, " d"]) -> dict[Path, Float[Tensor, ""]]:
    """Return rho(x; w), the path enumeration function (Definition 4), by path.

    The value of a path is the entry of x at its start, times the product of the weights w along the
    path.
    """
    x = torch.cat((x, x.new_ones(network.inputs - len(x))))
    return {path: x[vertex] * network.weights[list(path)].prod() for vertex, path in paths(network)}


def tree(network: Graph, products: dict[Path, Float[Tensor, ""]]) -> Float[Tensor, ""]:
    """Return mu(rho), the output of the tree network of Lemma 1.

    products: the path products rho, see `path_products`. A vertex of the tree is the end of a path,
    a suffix (Definition 10). The tree's weights are signs. All magnitudes are moved to the leaves,
    which is possible because every activation is positively homogeneous (Lemma 7). An inner edge
    has the sign of its weight in `network`. The edge at a leaf has the sign of the whole path.
    """
    signs = network.weights.detach().sign()

    def value(vertex: int, suffix: Path) -> Tensor:
        """Return the activation of a vertex of the tree.

        vertex: the vertex of `network` at which the suffix of a path begins. suffix: edges to the
        output.
        """
        if vertex < network.inputs:
            return signs[list(suffix)].prod() * products[suffix]
        terms = [
            signs[edge] * value(network.edges[edge][0], (edge, *suffix))
            for edge in network.into[vertex]
        ]
        total = torch.stack(terms).sum() if terms else torch.zeros_like(network.weights[0])
        return activate(total, network.slopes[vertex])

    return value(network.output, ())


def decomposition_rows(
    config: Invariances, flow: Flow, trajectory: Trajectory
) -> Iterator[Decomposition]:
    """Yield the rows of the table `decomposition`: networks compared with their tree of Lemma 1.

    Each network is compared before and after training, on two examples. Yields nothing if the
    networks have too many weights or paths. flow: the trained networks. trajectory: their
    parameters at all measured times.
    """
    network = flow.objective.network
    if isinstance(network, Dag):  # paths are listed on the CPU
        network = network.repeated(1, torch.device("cpu"))
    if trajectory.theta[0, 0].count_nonzero() > MOST_WEIGHTS:
        return
    for replicate in range(config.replicates):
        first = None
        for record, time in ((0, 0.0), (config.records, config.time)):
            theta = trajectory.theta[record].cpu()
            unrolled = graph_of(network, theta, replicate)
            first = first or unrolled
            count = unrolled.count()
            if count > MOST_PATHS:
                return
            x = flow.objective.x[replicate, :LISTED].cpu()
            shared = x.expand(len(theta), *x.shape)
            outputs = network.forward(theta, shared)[0][replicate]
            products = [path_products(unrolled, example) for example in x]
            now, frozen = (
                torch.stack([tree(columns, rho) for rho in products])
                for columns in (unrolled, first)
            )
            yield Decomposition(
                **vars(networks(config, time)[replicate]),
                paths=count,
                output=float(outputs.abs().max()),
                error=float((outputs - now).abs().max()),
                frozen_error=float((outputs - frozen).abs().max()),
            )
