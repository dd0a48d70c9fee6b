"""Layers of paper C: fully connected layers, convolutions and residual blocks.

A layer is a function of its weights. It returns the two matrices of Theorem 1: `incoming` (U, one
row for each output channel) and `outgoing` (V, one column for each input channel). It also states
two conditions of Lemma 2 about the adjacent neurons: whether all their weights in this layer are
learned (`learned`), and whether the neurons have the same neighbors in this layer (`shared`).

Activations are (R, n, features) for R networks with n examples. Features are channels x positions,
in this order. Weights have the axis R first.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from runner.papers.training_invariances import theory

LINEAR = 1.0
"""Slope of linear units: sigma(z) = z for z > 0, and slope z for z < 0 (0: ReLU)."""

Weights = dict[str, Tensor]
"""The weights of one layer of R networks by name."""


@dataclass(frozen=True)
class Grid:
    """The neurons of a layer: channels on a square of positions.

    Fully connected layers have one position. side: number of positions along a side of the square.
    """

    channels: int
    side: int = 1

    @property
    def positions(self) -> int:
        """Return the number of positions of one channel."""
        return self.side**2

    @property
    def features(self) -> int:
        """Return the number of neurons, channels x positions."""
        return self.channels * self.positions


def activate(z: Tensor, slope: float) -> Tensor:
    """Return the activation max(z, slope z) of each number z.

    It is the ReLU for slope 0, a leaky ReLU for a slope in between, and the identity for slope 1.
    """
    return z if slope == LINEAR else torch.nn.functional.leaky_relu(z, slope)


class _Layer:
    """Base class of layers whose neurons share their neighbors."""

    learned = shared = True

    @property
    def target(self) -> Grid:
        """Return the channels and positions of the neurons that the layer computes."""
        return Grid(self.width)

    @property
    def is_linear(self) -> bool:
        """Return whether all neurons of the layer are linear."""
        return self.slope == LINEAR


@dataclass(frozen=True)
class Dense(_Layer):
    """The fully connected layer that maps a to sigma(W a) or sigma(W a + b).

    - source: the channels and positions of the inputs.
    - width: number of neurons.
    - slope: slope of the activation sigma for negative inputs (0: ReLU, 1: linear).
    - bias: whether the layer has a bias b. It counts as the weight of an additional edge from a
      constant input (text after Lemma 3).
    """

    source: Grid
    width: int
    slope: float = LINEAR
    bias: bool = False
    kind = "dense"

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each weight tensor of one network, by name, outputs first."""
        shapes = {"W": (self.width, self.source.features)}
        return shapes | {"b": (self.width,)} if self.bias else shapes

    def forward(
        self, weights: Weights, a: Float[Tensor, "R n i"]
    ) -> tuple[Float[Tensor, "R n o"], Float[Tensor, "R examples c"]]:
        """Return the activations of the layer, and its preactivations.

        a: activations of the layer below, for n examples.
        """
        z = a @ weights["W"].mT
        if self.bias:
            z = z + weights["b"][:, None]
        return activate(z, self.slope), z

    def incoming(self, weights: Weights) -> Float[Tensor, "R c i"]:
        """Return the matrix of the weights into the layer's c neurons: W, or [W b] with a bias.

        It has a row for each neuron.
        """
        return torch.cat((weights["W"], weights["b"][..., None]), -1) if self.bias else weights["W"]

    def outgoing(self, weights: Weights) -> Float[Tensor, "R o c"]:
        """Return the matrix of the weights from the layer's c input channels, a column for each.

        A column has the weights from all positions of a channel. With one position the matrix is W.
        """
        return theory.by_channel(weights["W"], self.source.channels)

    @property
    def factor(self) -> int:
        """Return the factor s of the layer in the bounds of Theorem 2.

        It is 1, or the flattening factor if the layer reads channels with several positions.
        """
        return theory.flattening_factor(self.source.channels, self.source.positions)


@dataclass(frozen=True)
class Convolution(_Layer):
    """A two-dimensional convolution without padding.

    The weights are W (channels, source channels, k, k).

    - source: the channels and positions of the inputs.
    - channels: number of output channels.
    - kernel: k, the side of the kernel.
    - stride: the distance of two positions of the kernel, in pixels.
    - slope: slope of the activation for negative inputs (0: ReLU, 1: linear).
    """

    source: Grid
    channels: int
    kernel: int
    stride: int
    slope: float = LINEAR
    kind = "conv"

    @property
    def target(self) -> Grid:
        """Return the channels and positions of the neurons that the layer computes."""
        return Grid(self.channels, (self.source.side - self.kernel) // self.stride + 1)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of the weights W of one network, by name, outputs first."""
        return {"W": (self.channels, self.source.channels, self.kernel, self.kernel)}

    def forward(
        self, weights: Weights, a: Float[Tensor, "R n i"]
    ) -> tuple[Float[Tensor, "R n o"], Float[Tensor, "R examples c"]]:
        """Return the activations of the layer, and its preactivations.

        The preactivations have a row for each example and position, and a column for each channel.
        a: activations of the layer below, for n examples.
        """
        R, n, _ = a.shape
        maps = a.reshape(R * n, self.source.channels, self.source.side, self.source.side)
        patches = torch.nn.functional.unfold(maps, self.kernel, stride=self.stride)
        patches = patches.mT.reshape(R, n * self.target.positions, -1)
        z = patches @ self.incoming(weights).mT
        maps = activate(z, self.slope).view(R, n, self.target.positions, self.channels)
        return maps.mT.reshape(R, n, -1), z

    def incoming(self, weights: Weights) -> Float[Tensor, "R c i"]:
        """Return the matrix U of Theorem 1 for each network: a row for each output channel.

        A row has all weights into the channel, so U has (input channels * k * k) columns.
        """
        return theory.convolution_incoming(weights["W"])

    def outgoing(self, weights: Weights) -> Float[Tensor, "R o c"]:
        """Return the matrix V of Theorem 1 for each network: a column for each input channel.

        A column has all weights out of the channel, so V has (output channels * k * k) rows.
        """
        return theory.convolution_outgoing(weights["W"])

    @property
    def factor(self) -> int:
        """Return the factor s of the layer in the bounds of Theorem 2: its flattening factor."""
        return theory.flattening_factor(self.source.channels, self.kernel**2)


@dataclass(frozen=True)
class Residual(_Layer):
    """The residual block that maps a to skip(a) + W2 sigma(W1 a) (Definition 5).

    W1 is (hidden, inputs), and W2 is (width, hidden).

    - source: the channels and positions of the inputs.
    - skip: `identity`; `diagonal`, multiplication by a vector z of learned weights; `free`,
      multiplication by a learned matrix Z.
    - slope: slope of the activation sigma for negative inputs (0: ReLU, 1: linear).
    """

    source: Grid
    width: int
    hidden: int
    skip: str
    slope: float = LINEAR

    @property
    def kind(self) -> str:
        """Return the name of the block: residual_identity, residual_diagonal or residual_free."""
        return f"residual_{self.skip}"

    @property
    def learned(self) -> bool:
        """Return whether all weights of the block are learned: false for an identity skip."""
        return self.skip != "identity"

    @property
    def shared(self) -> bool:
        """Return whether all outputs of the block have the same inputs: only with a free skip."""
        return self.skip == "free"

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each weight tensor of one network, by name, outputs first."""
        inputs = self.source.features
        shapes = {"W1": (self.hidden, inputs), "W2": (self.width, self.hidden)}
        skips = {"diagonal": {"z": (self.width,)}, "free": {"Z": (self.width, inputs)}}
        return shapes | skips.get(self.skip, {})

    def forward(
        self, weights: Weights, a: Float[Tensor, "R n i"]
    ) -> tuple[Float[Tensor, "R n o"], Float[Tensor, "R examples c"]]:
        """Return the outputs of the block, and the preactivations of its hidden neurons.

        a: activations of the layer below, for n examples.
        """
        z = a @ weights["W1"].mT
        branch = activate(z, self.slope) @ weights["W2"].mT
        if "Z" in weights:
            return branch + a @ weights["Z"].mT, z
        return branch + (weights["z"][:, None] * a if "z" in weights else a), z

    def skip_matrix(self, weights: Weights) -> Float[Tensor, "R o i"]:
        """Return the skip connection as a matrix: the identity, diag(z), or Z."""
        if "Z" in weights:
            return weights["Z"]
        z = weights["z"] if "z" in weights else torch.ones_like(weights["W2"][..., 0])
        return torch.diag_embed(z)

    def incoming(self, weights: Weights) -> Float[Tensor, "R c i"]:
        """Return the matrix [W2 Z] of the weights into the block's c outputs, a row for each.

        Z is the skip connection as a matrix.
        """
        return theory.residual_incoming(weights["W2"], self.skip_matrix(weights))

    def outgoing(self, weights: Weights) -> Float[Tensor, "R o c"]:
        """Return the matrix of the weights from the block's c input channels, a column for each.

        It is W1 above Z, the skip connection as a matrix. A column has the weights from all
        positions of a channel.
        """
        stacked = theory.residual_outgoing(weights["W1"], self.skip_matrix(weights))
        return theory.by_channel(stacked, self.source.channels)

    @property
    def factor(self) -> int:
        """Return the factor s of the block in the bounds of Theorem 2: 8 (Lemma 11).

        It is multiplied by the flattening factor if the block reads channels with several
        positions.
        """
        grid = self.source
        return theory.RESIDUAL_FACTOR * theory.flattening_factor(grid.channels, grid.positions)


Layer = Dense | Convolution | Residual
