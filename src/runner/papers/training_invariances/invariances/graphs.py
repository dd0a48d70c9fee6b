"""Networks on directed acyclic graphs (paper C, Definition 1), S networks at once.

Vertices are numbered so that every edge leads to a higher number, the inputs first, the output
last. A[v, u] is the weight of the edge from u to v, zero without an edge. All quantities are
functions of A:

    z_v = sum_u A[v, u] a_u                    what a vertex computes before its activation
    (A^T A - A A^T)[v, v]                      the vertex invariant (Lemma 2, Eq. (4))
    (A^T A - A A^T)[u, v]                      of two vertices with the same neighbors (Eq. (5))
    ||A[k:, :k]||_F^2 - ||A[j:, :j]||_F^2      of two cuts (Lemma 3)

Hidden vertices are grouped in blocks. The vertices of a block have the same neighbors and the same
activation.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from runner.core.streams import Stream
from runner.papers.training_invariances.invariances.layers import LINEAR

SHARE = {"random_graph": 0.5, "dense_graph": 1.0}
"""Fraction of the possible edges that exist, by architecture; 1 as in a DenseNet."""

LEAK = 0.2
"""Slope of leaky units for negative inputs."""

FROZEN = 0.1
"""Fraction of the weights into the first quarter of the blocks that are frozen."""


@dataclass(frozen=True)
class Dag:
    """S networks on directed acyclic graphs of V vertices, with blocks of hidden vertices.

    - sizes: number of inputs, number of vertices of each block, 1 (the output).
    - edges: whether an edge leads to a vertex (second axis) from another vertex (third axis).
    - learned: which edges have learned weights; the weights of other edges are frozen.
    - slopes: slope of each vertex's activation for negative inputs (0: ReLU, 1: linear).
    """

    sizes: tuple[int, ...]
    edges: Bool[Tensor, "S V V"]
    learned: Bool[Tensor, "S V V"]  # edges with learned weights
    slopes: Float[Tensor, "S V"]  # slope of each vertex's activation for negative inputs; 1: linear

    @property
    def inputs(self) -> int:
        """Return the number of inputs, which are the first vertices."""
        return self.sizes[0]

    @property
    def cuts(self) -> list[int]:
        """Return the numbers of vertices before each cut of the graph.

        There is a cut after the inputs, and after each block of hidden vertices.
        """
        return torch.tensor(self.sizes[:-1]).cumsum(0).tolist()

    def repeated(self, copies: int, device: torch.device) -> "Dag":
        """Return copies of all graphs on a device, one after the other."""
        masks = (self.edges, self.learned, self.slopes)
        return Dag(self.sizes, *(m.to(device).repeat(copies, *[1] * (m.ndim - 1)) for m in masks))

    def adjacency(self, theta: Float[Tensor, "R P"]) -> Float[Tensor, "R V V"]:
        """Return the matrices A of the weights of all edges, for the first R networks.

        A[v, u] is the weight of the edge from vertex u to vertex v, and zero without an edge.
        theta: the rows of A below the rows of the inputs, flattened. Frozen weights get no
        gradient.
        """
        V = self.edges.shape[-1]
        rows = theta.view(len(theta), V - self.inputs, V)
        rows = torch.where(self.learned[: len(theta), self.inputs :], rows, rows.detach())
        return torch.cat((rows.new_zeros(len(theta), self.inputs, V), rows), dim=1)

    def forward(
        self, theta: Float[Tensor, "R P"], x: Float[Tensor, "R n d"]
    ) -> tuple[Float[Tensor, "R n"], list[Float[Tensor, "R n h"]]]:
        """Return the scores of the first R networks, and the preactivations of hidden vertices.

        The preactivations are a list of one tensor. theta: parameters, a row for each network. x:
        inputs of n examples.
        """
        A, a, outputs = self.adjacency(theta), x, []
        for first, last in pairwise([*self.cuts, A.shape[-1]]):
            z = a @ A[:, first:last, :first].mT
            below = self.slopes[: len(theta), None, first:last] * z
            a = torch.cat((a, torch.where(z > 0, z, below)), dim=-1)
            outputs.append(z)
        return outputs[-1].squeeze(-1), [torch.cat(outputs[:-1], dim=-1)]

    def invariant(self, theta: Float[Tensor, "R P"]) -> Float[Tensor, "R h h"]:
        """Return D = A^T A - A A^T of the h hidden vertices, for the first R networks.

        A has the weights of all edges. theta: parameters, a row for each network.
        """
        A = self.adjacency(theta)
        return (A.mT @ A - A @ A.mT)[:, self.inputs : -1, self.inputs : -1]

    def free(self) -> Bool[Tensor, "S h"]:
        """Return for each hidden vertex whether all weights of its edges are learned.

        This is the assumption of Lemma 2.
        """
        frozen = self.edges & ~self.learned
        return ~(frozen.any(-1) | frozen.any(-2))[:, self.inputs : -1]

    def neighbours(self) -> Bool[Tensor, "h h"]:
        """Return which pairs of hidden vertices have the same neighbors.

        These are the pairs of vertices within a block.
        """
        block = torch.repeat_interleave(torch.tensor(self.sizes[1:-1], device=self.edges.device))
        return block[:, None] == block


def cut(A: Float[Tensor, "*R V V"], first: int) -> Float[Tensor, "*R _ _"]:
    """Return the weights of all edges from the first `first` vertices to later vertices.

    A: weights of all edges. No edge leads back, so every path from an input to the output has
    exactly one of these edges. The edges are a layer (Definition 7) if all of them are learned.
    """
    return A[..., first:, :first]


def build_graph(
    architecture: str, depth: int, width: int, inputs: int, stream: Stream, replicates: int
) -> Dag:
    """Return networks on random graphs, a separate graph for each replicate.

    A graph has (depth - 1) * width hidden vertices in blocks. Each block is linear, ReLU or leaky
    ReLU. A tenth of the weights into the first quarter of the blocks is frozen.

    - architecture: `dense_graph`: blocks have `width` vertices, and each vertex reads all earlier
      blocks and the inputs. `random_graph`: blocks have width / 2 vertices, and half of the
      possible edges between blocks and from inputs exist. A block without incoming edges then reads
      all inputs. A block without outgoing edges leads to the output.
    - inputs: number of inputs.
    - stream: returns the random generator of a replicate.
    """
    size = width if architecture == "dense_graph" else max(2, width // 2)
    count = (depth - 1) * width // size
    sizes = (inputs, *[size] * count, 1)
    block = torch.repeat_interleave(torch.tensor([*[1] * inputs, *sizes[1:]]))
    edges, learned, slopes = [], [], []
    for replicate in range(replicates):
        draw = stream(replicate, "graph")
        V = inputs + count + 1
        joined = (torch.rand(V, V, generator=draw) < SHARE[architecture]).tril(-1)
        joined[:inputs] = False
        joined[inputs:, :inputs] |= ~joined[inputs:].any(1, keepdim=True)
        joined[-1, inputs:-1] |= ~joined[:, inputs:-1].any(0)
        kinds = torch.tensor([LINEAR, 0.0, LEAK], dtype=torch.float64)
        kinds = kinds[torch.randint(3, (count,), generator=draw)]
        ends = torch.ones(1, dtype=torch.float64)
        slopes.append(torch.cat((ends.expand(inputs), kinds, ends))[block])
        edges.append(joined[block][:, block])
        frozen = torch.rand(edges[-1].shape, generator=draw) < FROZEN
        frozen[inputs + size * max(1, count // 4) :] = False
        learned.append(edges[-1] & ~frozen)
    return Dag(sizes, torch.stack(edges), torch.stack(learned), torch.stack(slopes))


def draw_weights(
    graph: Dag, replicate: int, gain: float, twin: float, generator: torch.Generator
) -> Float[Tensor, " P"]:
    """Return initial weights of one graph network, N(0, gain^2 / number of inputs), in float64.

    The first two vertices of a block have nonnegative incoming weights, so they tend to be active
    for every example. The next two, in blocks of four or more, are twins. Their incoming and
    outgoing weights differ by `twin` standard deviations, so they are active for the same examples.

    - replicate: number of the network.
    - gain: size of the weights.
    - twin: distance of the twins.
    """
    edges = graph.edges[replicate].cpu()
    A = torch.randn(edges.shape, generator=generator, dtype=torch.float64)
    for first, last in pairwise(graph.cuts):
        A[first : first + 2].abs_()
        if last - first >= 4:
            one, other = first + 2, first + 3
            A[one, : graph.inputs] -= A[one, : graph.inputs].mean()
            A[other] = A[one] + twin * A[other]
            A[:, other] = A[:, one] + twin * A[:, other]
    A = edges * A * gain / edges.sum(-1, keepdim=True).clamp(min=1).sqrt()
    return A[graph.inputs :].flatten()
