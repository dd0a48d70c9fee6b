"""Where a network has an invariant, and what the paper promises of it."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from runner.papers.invariances import theory
from runner.papers.invariances.flow.layers import LINEAR, Weights
from runner.papers.invariances.flow.network import Network

ITEMS = {
    ("dense", "dense"): 1,
    ("conv", "conv"): 2,
    ("residual_free", "residual_free"): 4,
    ("conv", "dense"): 5,
    ("conv", "residual_free"): 6,
    ("residual_free", "dense"): 7,
    ("dense", "residual_free"): 7,
}
"""Theorem 1: its items by the kinds of the layers before and behind; item 3 is within a block."""


@dataclass(frozen=True)
class Junction:
    """The neurons (channels) between two layers, or within a residual block (before = behind).

    before, behind: indices of the layers, from 0. item: of Theorem 1; 0 where it has none. linear:
    whether the neurons are. learned: whether all weights around them are, as Lemma 2 asks. shared:
    whether any two of them have the same neighbours. pattern: which of the network's nonlinear
    layers the neurons are; None if linear.
    """

    before: int
    behind: int
    name: str
    item: int
    linear: bool
    learned: bool
    shared: bool
    pattern: int | None

    def matrices(
        self, network: Network, weights: list[Weights]
    ) -> tuple[Float[Tensor, "R c i"], Float[Tensor, "R o c"]]:
        """U and V of the neurons."""
        if self.before == self.behind:
            return weights[self.before]["W1"], weights[self.before]["W2"]
        incoming = network.layers[self.before].incoming(weights[self.before])
        return incoming, network.layers[self.behind].outgoing(weights[self.behind])

    def invariant(self, network: Network, theta: Float[Tensor, "R P"]) -> Float[Tensor, "R c c"]:
        """D of the neurons for the networks with these parameters."""
        return theory.matrix_invariant(*self.matrices(network, network.unpack(theta)))

    @property
    def promises(self) -> dict[str, bool]:
        """Which part of D is constant: by Lemma 2 its diagonal and the entries of pairs with the
        same activation pattern, by Theorem 1 all of it."""
        return {
            "diagonal": self.learned,
            "active": self.shared,
            "full": self.shared and self.linear,
        }


def junctions(network: Network) -> list[Junction]:
    """All junctions of the network, from input to output."""
    found: list[Junction] = []
    nonlinear = 0
    for index, layer in enumerate(network.layers):
        is_residual = layer.kind.startswith("residual")
        pattern = None if layer.is_linear else nonlinear
        nonlinear += not layer.is_linear
        if is_residual:
            name = f"within {layer.kind}"
            found.append(Junction(index, index, name, 3, pattern is None, True, True, pattern))
        if index + 1 == len(network.layers):
            return found
        kinds = (layer.kind, network.layers[index + 1].kind)
        if is_residual or layer.slope == LINEAR:
            pattern = None  # the outputs of a block are linear, whatever its branch is
        found.append(
            Junction(
                before=index,
                behind=index + 1,
                name="-".join(kinds),
                item=ITEMS.get(kinds, 0),
                linear=pattern is None,
                learned="residual_identity" not in kinds,
                shared=not {"residual_identity", "residual_diagonal"} & set(kinds),
                pattern=pattern,
            )
        )
    return found


def linear_tail(network: Network) -> int:
    """The index of the first layer that Theorem 2 speaks of: from it on the network is linear
    convolutions, linear ResNetFree blocks and linear fully connected layers."""
    start = len(network.layers)
    for layer in reversed(network.layers):
        if not layer.is_linear or layer.kind in ("residual_identity", "residual_diagonal"):
            break
        start -= 1
    return start
