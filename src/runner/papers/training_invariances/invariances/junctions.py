"""Places where a network has an invariant, and the entries that the paper declares constant."""

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
    """Neurons (channels) between two layers, or within a residual block.

    - before, behind: indices of the layers, from 0; equal within a residual block.
    - name: kinds of the layers.
    - item: item of Theorem 1 about the neurons, or 0 without one.
    - learned: whether all weights around the neurons are learned, as Lemma 2 assumes.
    - shared: whether any two neurons have the same neighbors.
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
        """Return U and V, the weights into and out of the neurons.

        U has a row, V a column for each of the c neurons. weights: those of each layer.
        """
        if self.before == self.behind:
            return weights[self.before]["W1"], weights[self.before]["W2"]
        incoming = network.layers[self.before].incoming(weights[self.before])
        return incoming, network.layers[self.behind].outgoing(weights[self.behind])

    def invariant(self, network: Network, theta: Float[Tensor, "R P"]) -> Float[Tensor, "R c c"]:
        """Return D = V^T V - U U^T of the neurons for networks with the parameters theta."""
        return theory.matrix_invariant(*self.matrices(network, network.unpack(theta)))

    @property
    def promises(self) -> dict[str, bool]:
        """Return which parts of D are constant by the paper, by the name of the part.

        Lemma 2 promises the diagonal, and entries of pairs with equal activation pattern (`active`
        if both are always on, else `mixed`). Theorem 1 promises all of D (`full`).
        """
        mixed = {} if self.linear else {"mixed": self.shared}
        return {
            "diagonal": self.learned,
            "active": self.shared,
            **mixed,
            "full": self.shared and self.linear,
        }


def junctions(network: Network) -> list[Junction]:
    """Return all junctions of the network, from input to output."""
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

    From this layer on the network has only linear convolutions, linear ResNetFree blocks and linear
    fully connected layers, without biases.
    """
    start = len(network.layers)
    for index, layer in reversed(list(enumerate(network.layers))):
        if not (layer.is_linear and layer.shared) or (isinstance(layer, Dense) and layer.bias):
            break
        start = index
    return start
