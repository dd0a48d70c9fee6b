"""Lemma 1: a network is a tree network of signs, applied to the products of weights along paths.

There are exponentially many paths, so that it is for small networks only: there the table
`decomposition` compares f with its tree network.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.studies import Row
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
from runner.papers.training_invariances.invariances.trajectory import AT, At, Trajectory, networks

MOST_WEIGHTS, MOST_PATHS = 300, 3000
"""Bounds for networks whose paths are listed for Lemma 1."""

LISTED = 2
"""Examples that f and its tree network are compared on."""


Path = tuple[int, ...]
"""Edges from an input to the output, by their index in the graph."""


@dataclass(frozen=True)
class Graph:
    """The computation graph of one network: edges source -> target, weights, and activations.

    Vertices are numbered from 0, the inputs first, a constant 1 last among them where there are
    biases; no edge goes to a lower number. slopes: of each vertex's activation (1: linear).
    """

    edges: list[tuple[int, int]]
    weights: Float[Tensor, " edges"]
    slopes: list[float]
    inputs: int
    output: int

    @cached_property
    def into(self) -> list[list[int]]:
        """Return the edges that end in each vertex."""
        found: list[list[int]] = [[] for _ in self.slopes]
        for index, (_, target) in enumerate(self.edges):
            found[target].append(index)
        return found

    def count(self) -> int:
        """Return the number of paths from the inputs to the output."""
        paths = [1] * self.inputs + [0] * (len(self.slopes) - self.inputs)
        for vertex in range(self.inputs, len(self.slopes)):
            paths[vertex] = sum(paths[self.edges[edge][0]] for edge in self.into[vertex])
        return paths[self.output]


def graph_of(network: Network | Dag, theta: Float[Tensor, "R P"], index: int) -> Graph:
    """Return the graph of one network of a stack."""
    if not isinstance(network, Dag):
        return graph(network, network.unpack(theta[index]))
    targets, sources = network.edges[index].nonzero().T
    edges = list(zip(sources.tolist(), targets.tolist(), strict=True))
    slopes = network.slopes[index].tolist()
    A = network.adjacency(theta)[index]
    return Graph(edges, A[targets, sources], slopes, network.inputs, len(slopes) - 1)


def graph(network: Network, weights: list[Weights]) -> Graph:
    """Return the graph of one network; weights without the replicate axis.

    Weights that a convolution shares are on several edges; identity skips are edges of weight one.
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
        """Add an edge for each entry that is not zero."""
        for row, column in (matrix != 0).nonzero().tolist():
            edges.append((sources[column], targets[row]))
            values.append(matrix[row, column])

    def add(count: int, slope: float) -> range:
        """Add vertices of one slope; return their numbers."""
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
    """Return the layer as a linear map: what it makes of each unit vector, before activation."""
    if isinstance(block, Dense):
        return weights["W"]
    linear = replace(block, slope=LINEAR)
    unit = torch.eye(block.source.features, dtype=torch.float64)
    return linear.forward({name: w[None] for name, w in weights.items()}, unit[None])[0][0].T


def paths(network: Graph) -> Iterator[tuple[int, Path]]:
    """Yield all maximal paths, each with the input vertex that it starts from."""

    def from_inputs_to(vertex: int, suffix: Path) -> Iterator[tuple[int, Path]]:
        """Yield the paths from an input to a vertex, with `suffix`, the edges that follow."""
        if vertex < network.inputs:
            yield vertex, suffix
        for edge in network.into[vertex]:
            yield from from_inputs_to(network.edges[edge][0], (edge, *suffix))

    yield from from_inputs_to(network.output, ())


def path_products(network: Graph, x: Float[Tensor, " d"]) -> dict[Path, Float[Tensor, ""]]:
    """Return rho(x; w), the path enumeration function (Definition 4): x_p times the weights of
    p."""
    x = torch.cat((x, x.new_ones(network.inputs - len(x))))
    return {path: x[vertex] * network.weights[list(path)].prod() for vertex, path in paths(network)}


def tree(network: Graph, products: dict[Path, Float[Tensor, ""]]) -> Float[Tensor, ""]:
    """Return mu(rho): the tree network of Lemma 1, whose weights are the signs of the network's.

    Its vertices are the suffixes of paths (Definition 10). Magnitudes have been pulled back to the
    leaves, which is allowed because every activation is positively homogeneous (Lemma 7), so that
    each inner edge keeps its sign alone; the edge at a leaf carries the sign of the whole path.
    """
    signs = network.weights.detach().sign()

    def value(vertex: int, suffix: Path) -> Tensor:
        """Return what the tree's vertex, the suffix of a path, gives after its activation."""
        if vertex < network.inputs:
            return signs[list(suffix)].prod() * products[suffix]
        terms = [
            signs[edge] * value(network.edges[edge][0], (edge, *suffix))
            for edge in network.into[vertex]
        ]
        total = torch.stack(terms).sum() if terms else torch.zeros_like(network.weights[0])
        return activate(total, network.slopes[vertex])

    return value(network.output, ())


@dataclass(frozen=True)
class Decomposition(At, Row):
    """One row per replicate at the smallest rate, at the start and at the end."""

    table: ClassVar[str] = "decomposition"
    keys: ClassVar[tuple[str, ...]] = AT

    paths: int  # from the inputs to the output
    output: float  # largest |f(x)| over some examples
    error: float  # largest |f(x) - mu(rho(x))| there, mu the tree network of Lemma 1
    frozen_error: float  # the same with the signs of the start in mu


def decomposition_rows(
    config: Invariances, flow: Flow, trajectory: Trajectory
) -> Iterator[Decomposition]:
    """Yield Lemma 1 before and after training, where the paths can be listed."""
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
                torch.stack([tree(each, rho) for rho in products]) for each in (unrolled, first)
            )
            yield Decomposition(
                **vars(networks(config, time)[replicate]),
                paths=count,
                output=float(outputs.abs().max()),
                error=float((outputs - now).abs().max()),
                frozen_error=float((outputs - frozen).abs().max()),
            )
