"""Places in a network where the matrix D is defined, and which entries of D are constant."""

from dataclasses import dataclass
from itertools import zip_longest

from jaxtyping import Float
from torch import Tensor

from runner.papers.training_invariances import theory
from runner.papers.training_invariances.invariances.items import BETWEEN, WITHIN
from runner.papers.training_invariances.invariances.layers import Dense, Residual, Weights
from runner.papers.training_invariances.invariances.network import Network


@dataclass(frozen=True)
class Junction:
    """The neurons (or channels) between two layers or within a residual block, where D is defined.

    - before, behind: indices of the layers before and behind the neurons, from 0. Within a residual
      block both are the index of the block.
    - name: the kinds of the layers, as "dense-conv".
    - item: the item of Theorem 1 about these neurons; 0 if there is none.
    - learned: whether all weights into and out of the neurons are learned, as Lemma 2 assumes.
    - shared: whether any two of the neurons have the same neighbors.
    - pattern: index of the neurons' layer among the nonlinear layers; None if the neurons are
      linear.
    """

    before: int
    behind: int
    name: str
    item: int
    learned: bool
    shared: bool
    pattern: int | None

    @property
    def linear(self) -> bool:
        """Return whether the neurons are linear."""
        return self.pattern is None

    def matrices(
        self, network: Network, weights: list[Weights]
    ) -> tuple[Float[Tensor, "R c i"], Float[Tensor, "R o c"]]:
        """Return U and V, the matrices of the weights into and out of the c neurons.

        U has a row and V a column for each neuron. weights: the weights of each layer of the
        network.
        """
        if self.before == self.behind:
            return weights[self.before]["W1"], weights[self.before]["W2"]
        incoming = network.layers[self.before].incoming(weights[self.before])
        return incoming, network.layers[self.behind].outgoing(weights[self.behind])

    def invariant(self, network: Network, theta: Float[Tensor, "R P"]) -> Float[Tensor, "R c c"]:
        """Return D = V^T V - U U^T of the neurons, for R networks with the parameters theta."""
        return theory.matrix_invariant(*self.matrices(network, network.unpack(theta)))

    @property
    def promises(self) -> dict[str, bool]:
        """Return for each part of D, by name, whether the part is constant by the paper.

        - `diagonal`: constant if all weights of the neurons are learned (Lemma 2).
        - `active`: entries of two neurons that are active for every example; constant if the
          neurons have the same neighbors (Lemma 2).
        - `mixed`: entries of other pairs that are active for the same examples; constant under the
          same condition. Linear neurons have no such pairs.
        - `full`: all of D; constant if the neurons are linear and have the same neighbors (Theorem
          1).
        """
        mixed = {} if self.linear else {"mixed": self.shared}
        return {
            "diagonal": self.learned,
            "active": self.shared,
            **mixed,
            "full": self.shared and self.linear,
        }


def junctions(network: Network) -> list[Junction]:
    """Return all places in the network where D is defined, from input to output."""
    pairs: list[Junction] = []
    nonlinear = 0
    for index, (layer, following) in enumerate(zip_longest(network.layers, network.layers[1:])):
        pattern = None if layer.is_linear else nonlinear
        nonlinear += not layer.is_linear
        if isinstance(layer, Residual):
            within = f"within {layer.kind}"
            pairs.append(Junction(index, index, within, WITHIN, True, True, pattern))
            pattern = None  # the outputs of a block are linear, whatever its branch is
        if following is not None:
            item = BETWEEN.get((layer.kind, following.kind), 0)
            learned = layer.learned and following.learned
            shared = layer.shared and following.shared
            name = f"{layer.kind}-{following.kind}"
            pairs.append(Junction(index, index + 1, name, item, learned, shared, pattern))
    return pairs


def linear_tail(network: Network) -> int:
    """Return the index of the first layer to which Theorem 2 applies.

    From this layer on, all layers are linear and have no biases. They are convolutions, residual
    blocks with a trained skip (ResNetFree) or fully connected layers. If there are none, the result
    is the number of layers.
    """
    start = len(network.layers)
    for index, layer in reversed(list(enumerate(network.layers))):
        if not (layer.is_linear and layer.shared) or (isinstance(layer, Dense) and layer.bias):
            break
        start = index
    return start
