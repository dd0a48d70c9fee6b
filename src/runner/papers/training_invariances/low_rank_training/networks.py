"""Networks with a tail of linear layers, S of them side by side, bias-free.

Two ReLU layers (mlp) or three ReLU convolutions (conv), then three linear layers. The stack has the
C networks of a replicate one after another, R replicates, S = R C: those of one replicate read the
same images. The linear tail acts as one matrix, the product of its layers.
"""

from math import prod, sqrt

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional

from runner.core.errors import lookup

TAIL = 3
"""Linear layers at the end."""
RELU_LAYERS = 2
KERNEL, STRIDES = 3, (2, 2, 1)
"""Of the convolutions, with a border of one zero."""

Parameters = dict[str, Float[Tensor, "S *_"]]
"""W1, W2, ... of all networks."""


def _mlp(channels: int, image: tuple[int, ...]) -> tuple[list[tuple[int, ...]], int, int]:
    return [], prod(image), RELU_LAYERS + TAIL


def _conv(channels: int, image: tuple[int, ...]) -> tuple[list[tuple[int, ...]], int, int]:
    read = [image[0], *[channels] * (len(STRIDES) - 1)]
    convolutions = [(channels, n_in, KERNEL, KERNEL) for n_in in read]
    return convolutions, channels * positions(image)[-1], TAIL


ARCHITECTURES = {"mlp": _mlp, "conv": _conv}
"""By name, from channels and an image: the shapes of the convolutions, what the layers behind them
read, and how many these are."""


def shapes(
    architecture: str, width: int, channels: int, image: tuple[int, ...], outputs: int
) -> list[tuple[int, ...]]:
    """The shape of each layer's weights: `(out, in)`, of a convolution `(out, in, 3, 3)`.

    image: channels, height and width. Raises InputError for an unknown architecture.
    """
    front = lookup("architecture", architecture, ARCHITECTURES)
    convolutions, read, dense = front(channels, image)
    sizes = [read, *[width] * (dense - 1), outputs]
    return convolutions + [(o, i) for i, o in zip(sizes[:-1], sizes[1:], strict=True)]


def positions(image: tuple[int, ...]) -> list[int]:
    """Of the grids behind the convolutions. image: channels, height and width."""
    found, sides = [], image[1:]
    for stride in STRIDES:
        sides = [(side - 1) // stride + 1 for side in sides]
        found.append(prod(sides))
    return found


def draw(layers: list[tuple[int, ...]], stream: Generator) -> list[Float[Tensor, "*_"]]:
    """The weights of one network at gain one, N(0, 1 / fan in), in float64."""
    return [
        torch.randn(shape, dtype=torch.float64, generator=stream) / sqrt(prod(shape[1:]))
        for shape in layers
    ]


def tail(parameters: Parameters) -> list[Float[Tensor, "S _ _"]]:
    """The weights of the linear layers."""
    return list(parameters.values())[-TAIL:]


def outputs(
    parameters: Parameters, x: Float[Tensor, "R n channels height width"]
) -> Float[Tensor, "S outputs n"]:
    """What all networks make of the images of their replicates."""
    *layers, before_last, last = parameters.values()
    H = features(layers[:-1], x)
    return last @ before_last @ layers[-1] @ H


def features(
    layers: list[Float[Tensor, "S *_"]], x: Float[Tensor, "R n channels height width"]
) -> Float[Tensor, "S d n"]:
    """What the ReLU layers give to the linear tail."""
    S, R, n = len(layers[0]), *x.shape[:2]
    if layers[0].ndim == 5:
        H = x.transpose(0, 1).flatten(1, 2)  # n (R channels) height width
        for number, (W, stride) in enumerate(zip(layers, STRIDES, strict=True)):
            groups = S if number else R
            H = functional.conv2d(H, W.flatten(0, 1), stride=stride, padding=1, groups=groups)
            H = H.relu()
        return H.reshape(n, S, -1).permute(1, 2, 0)
    first, *others = layers
    # The weights of a replicate's networks as one matrix: its images are read once.
    H = first.reshape(R, -1, first.shape[-1]) @ x.flatten(2).mT
    H = H.view(S, -1, n).relu()
    for W in others:
        H = (W @ H).relu()
    return H
