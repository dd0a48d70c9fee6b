"""Networks that end in three linear layers, without biases, S at once.

Two ReLU layers (`mlp`) or three ReLU convolutions (`conv`) precede the linear layers. These linear
layers, the tail, act together as one matrix, the product of their weights. There are R replicates,
and each has S / R networks, which read the same images. The networks are ordered by replicate.
"""

from itertools import pairwise
from math import prod, sqrt

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional

from runner.core.choices import lookup

TAIL = 3
"""Number of linear layers at the end."""
KERNEL, STRIDES = 3, (2, 2, 1)
"""Kernel size and strides of the convolutions, with a border of one zero."""

FRONTS = {"mlp": ((), 2), "conv": (STRIDES, 0)}
"""Layers before the tail by architecture: strides of ReLU convolutions, number of ReLU layers."""

Parameters = dict[str, Float[Tensor, "S *_"]]
"""Weights W1, W2, ... of all networks."""


def shapes(
    architecture: str, width: int, channels: int, image: tuple[int, ...], outputs: int
) -> list[tuple[int, ...]]:
    """Return the shape of each layer's weights: `(out, in)`, for a convolution `(out, in, 3, 3)`.

    - architecture: `mlp` or `conv`.
    - width: number of neurons of each hidden layer.
    - channels: number of channels of each convolution.
    - image: channels, height and width of the inputs.
    - outputs: number of outputs.

    Raises InputError for an unknown architecture.
    """
    strides, dense = lookup("architecture", architecture, FRONTS)
    convolutions, (inputs, *sides) = [], image
    for stride in strides:
        convolutions.append((channels, inputs, KERNEL, KERNEL))
        inputs, sides = channels, [(side - 1) // stride + 1 for side in sides]
    sizes = [inputs * prod(sides), *[width] * (dense + TAIL - 1), outputs]
    return convolutions + [(o, i) for i, o in pairwise(sizes)]


def draw(layers: list[tuple[int, ...]], stream: Generator) -> list[Float[Tensor, "*_"]]:
    """Return the initial weights of one network, N(0, 1 / number of inputs), in float64.

    layers: the shape of each layer's weights.
    """
    return [
        torch.randn(shape, dtype=torch.float64, generator=stream) / sqrt(prod(shape[1:]))
        for shape in layers
    ]


def tail(parameters: Parameters) -> list[Float[Tensor, "S _ _"]]:
    """Return the weights of the three linear layers at the end of all networks."""
    return list(parameters.values())[-TAIL:]


def outputs(
    parameters: Parameters, x: Float[Tensor, "R n channels height width"]
) -> Float[Tensor, "S outputs n"]:
    """Return the outputs of all S networks for n images.

    parameters: weights of each layer. x: images of the R replicates, each of which has S / R
    networks.
    """
    *layers, before_last, last = parameters.values()
    H = features(layers[:-1], x)
    return last @ before_last @ layers[-1] @ H


def features(
    layers: list[Float[Tensor, "S *_"]], x: Float[Tensor, "R n channels height width"]
) -> Float[Tensor, "S d n"]:
    """Return the outputs of the last ReLU layer: the d inputs of the first linear layer.

    layers: the weights of all ReLU layers, for S networks. x: n images for each of the R
    replicates.
    """
    S, R, n = len(layers[0]), *x.shape[:2]
    if layers[0].ndim == 5:
        H = x.transpose(0, 1).flatten(1, 2)  # n (R channels) height width
        for number, (W, stride) in enumerate(zip(layers, STRIDES, strict=True)):
            groups = S if number else R
            H = functional.conv2d(H, W.flatten(0, 1), stride=stride, padding=1, groups=groups)
            H = H.relu()
        return H.reshape(n, S, -1).permute(1, 2, 0)
    first, *later_layers = layers
    # The weights of a replicate's networks form one matrix, so its images are read once.
    H = first.reshape(R, -1, first.shape[-1]) @ x.flatten(2).mT
    H = H.view(S, -1, n).relu()
    for W in later_layers:
        H = (W @ H).relu()
    return H
