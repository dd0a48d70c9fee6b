"""The network type of paper A: frozen weights, with a normalization layer after each of them.

Targets and all their reconstructions have this type, in float64 (torch tensors) or with any number
of digits (numpy arrays of mpmath numbers).
"""

from dataclasses import dataclass, replace
from math import nan

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

Vector = Float[Tensor, " _"] | Shaped[np.ndarray, " _"]
Matrix = Float[Tensor, "_ _"] | Shaped[np.ndarray, "_ _"]


@dataclass(frozen=True)
class Layer:
    """The layer `h -> scale * (W (h + A x_i)) + shift`, followed by a ReLU if `relu` is true.

    - weight: W (out, in); scale, shift: (out,). By Proposition 1 of paper A this is a linear layer
      followed by batch normalization with fixed mean and variance.
    - skip: A (in, k), a skip connection from the block `x_i = x[start : start + k]` of the network
      block's input; None: no skip connection. An input that ends inside the block is padded with
      zeros.
    """

    weight: Matrix
    scale: Vector
    shift: Vector
    relu: bool
    skip: Matrix | None = None
    start: int = 0

    def __call__(self, hidden: Matrix | None, inputs: Matrix) -> Matrix:
        """Return outputs (N, out) for hidden values (N, in).

        hidden: None if the skip connection is the layer's only input.
        """
        if self.skip is not None:
            block = inputs[:, self.start : self.start + self.skip.shape[1]]
            entering = block @ self.skip[:, : block.shape[1]].T
            hidden = entering if hidden is None else hidden + entering
        output = hidden @ self.weight.T * self.scale + self.shift
        return _relu(output) if self.relu else output


Block = tuple[Layer, ...]
"""Consecutive layers whose skip connections read the input of the block.

A target has one layer in each block. The corresponding block of a reconstruction has two layers
(Theorem 1) or ceil(d / k) + 1 layers (Theorem 2).
"""


@dataclass(frozen=True)
class Network:
    """A network of several blocks of layers, one after the other."""

    blocks: tuple[Block, ...]

    def __call__(self, inputs: Matrix) -> Matrix:
        """Return outputs (N, out) for inputs (N, in)."""
        for block in self.blocks:
            hidden = inputs if block[0].skip is None else None
            for layer in block:
                hidden = layer(hidden, inputs)
            inputs = hidden
        return inputs

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Return the layers of all blocks, in their order."""
        return sum(self.blocks, ())


def relu_network(weights: list[Matrix], biases: list[Vector]) -> Network:
    """Return the network `g(x) = W_l relu( ... relu(W_1 x + b_1)) + b_l`, a target.

    Its last layer is linear. A target's normalization scales Gamma* are part of `W` (Remark 7).
    """
    layers = [Layer(W, b * 0 + 1, b, relu=True) for W, b in zip(weights, biases, strict=True)]
    layers[-1] = replace(layers[-1], relu=False)
    return Network(tuple((layer,) for layer in layers))


def truncate(target: Network, rank: int) -> Network:
    """Return the target with each weight matrix replaced by its best approximation of a rank.

    The approximation is the truncated singular value decomposition.
    """

    def truncated(layer: Layer) -> Layer:
        U, s, Vh = torch.linalg.svd(layer.weight, full_matrices=False)
        return replace(layer, weight=(U[:, :rank] * s[:rank]) @ Vh[:rank])

    return Network(tuple((truncated(layer),) for layer in target.layers))


def _relu(x: Matrix) -> Matrix:
    return torch.relu(x) if isinstance(x, Tensor) else np.maximum(x, 0)


def agreement(output: Matrix, expected: Matrix) -> float:
    """Return the fraction of rows whose largest entry is in the same column of both matrices.

    output, expected: logits of two classifiers, with samples as rows. The result is nan if an entry
    is nan or infinite.
    """
    output, expected = np.asarray(output), np.asarray(expected)
    if not np.isfinite((output - expected).astype(np.float64)).all():
        return nan
    return float(np.mean(output.argmax(axis=1) == expected.argmax(axis=1)))
