"""The network type of paper A: frozen weights, and a normalization layer after each of them.

Target networks and the networks that imitate them have this type. Their numbers are float64 (torch
tensors) or have any number of digits (numpy arrays of mpmath numbers).
"""

from dataclasses import dataclass, replace
from math import nan

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from runner.core.arrays import takes_arrays

Vector = Float[Tensor, " _"] | Shaped[np.ndarray, " _"]
Matrix = Float[Tensor, "_ _"] | Shaped[np.ndarray, "_ _"]


@dataclass(frozen=True)
class Layer:
    """The layer `h -> scale * (W (h + A x_i)) + shift`, with a ReLU after it if `relu` is true.

    By Proposition 1 of paper A this is a linear layer followed by batch normalization with fixed
    mean and variance.

    - weight: W (out, in).
    - scale, shift: vectors (out,), gamma and beta of the batch normalization.
    - skip: A (in, k), a skip connection; None if the layer has none. The skip connection reads the
      entries `x_i = x[start : start + k]` of the input x of the layer's block. If x ends earlier,
      zeros are added.
    - start: the first entry of x that the skip connection reads.
    """

    weight: Matrix
    scale: Vector
    shift: Vector
    relu: bool
    skip: Matrix | None = None
    start: int = 0

    def __call__(self, hidden: Matrix | None, inputs: Matrix) -> Matrix:
        """Return the outputs of the layer, an array (N, out).

        hidden: the outputs (N, in) of the previous layer; None if the skip connection is the only
        input. inputs: the inputs (N, n) of the layer's block, which the skip connection reads.
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
    """A network: blocks of layers, one block after the other."""

    blocks: tuple[Block, ...]

    @takes_arrays()
    def __call__(self, inputs: Matrix) -> Matrix:
        """Return the outputs of the network, an array (N, out), for N inputs, an array (N, in)."""
        for block in self.blocks:
            hidden = inputs if block[0].skip is None else None
            for layer in block:
                hidden = layer(hidden, inputs)
            inputs = hidden
        return inputs

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Return the layers of all blocks, from input to output."""
        return sum(self.blocks, ())


@takes_arrays()
def relu_network(weights: list[Matrix], biases: list[Vector]) -> Network:
    """Return the ReLU network `g(x) = W_l relu( ... relu(W_1 x + b_1)) + b_l`.

    In paper A this is a target, the network that others imitate. The target's normalization scales
    Gamma* are part of its weights W (Remark 7). weights: W_1 to W_l. biases: b_1 to b_l.
    """
    layers = [Layer(W, b * 0 + 1, b, relu=True) for W, b in zip(weights, biases, strict=True)]
    layers[-1] = replace(layers[-1], relu=False)
    return Network(tuple((layer,) for layer in layers))


@takes_arrays()
def truncate(target: Network, rank: int) -> Network:
    """Return the network with each weight matrix replaced by its best low-rank approximation.

    The approximation is the truncated singular value decomposition. rank: the largest rank of the
    new matrices. The network must have torch tensors.
    """

    def truncated(layer: Layer) -> Layer:
        U, s, Vh = torch.linalg.svd(layer.weight, full_matrices=False)
        return replace(layer, weight=(U[:, :rank] * s[:rank]) @ Vh[:rank])

    return Network(tuple((truncated(layer),) for layer in target.layers))


def _relu(x: Matrix) -> Matrix:
    return torch.relu(x) if isinstance(x, Tensor) else np.maximum(x, 0)


@takes_arrays(detach=True)
def agreement(output: Matrix, expected: Matrix) -> float:
    """Return the fraction of samples for which two classifiers predict the same class.

    output, expected: logits of the two classifiers, one row for each sample and one column for each
    class. The predicted class has the largest logit. The result is nan if a logit is nan or
    infinite.
    """
    output, expected = np.asarray(output), np.asarray(expected)
    if not np.isfinite((output - expected).astype(np.float64)).all():
        return nan
    return float(np.mean(output.argmax(axis=1) == expected.argmax(axis=1)))
