"""Layered networks of paper C, R at once: each network is a row of parameters."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod, sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.choices import lookup
from runner.papers.training_invariances.invariances.layers import (
    LINEAR,
    Convolution,
    Dense,
    Grid,
    Layer,
    Residual,
    Weights,
)

KERNEL = 2
"""Side of all convolution kernels: the first one halves the image, others remove a pixel."""

TWIN_DISTANCE = 1e-6
"""Initial distance of twins, in standard deviations of a weight.

It is small against a step. Otherwise an example would become active at one of the twins first.
"""


@dataclass(frozen=True)
class Network:
    """A network of consecutive layers with one output, a score whose sign is the predicted class.

    Its parameters are a vector theta of P numbers.
    """

    layers: tuple[Layer, ...]

    @cached_property
    def sizes(self) -> list[int]:
        """Return the number of parameters of each weight tensor, from input to output."""
        return [prod(shape) for layer in self.layers for shape in layer.shapes().values()]

    @property
    def is_linear(self) -> bool:
        """Return whether the score is a linear function of the inputs."""
        return all(layer.is_linear and "b" not in layer.shapes() for layer in self.layers)

    def unpack(self, theta: Float[Tensor, "*R P"]) -> list[Weights]:
        """Return the weights of each layer by name, as views of the parameters theta."""
        parts = iter(theta.split(self.sizes, dim=-1))
        return [
            {name: next(parts).unflatten(-1, shape) for name, shape in layer.shapes().items()}
            for layer in self.layers
        ]

    def forward(
        self, theta: Float[Tensor, "R P"], x: Float[Tensor, "R n d"]
    ) -> tuple[Float[Tensor, "R n"], list[Float[Tensor, "R _ _"]]]:
        """Return the scores, and the preactivations of each layer with nonlinear neurons.

        theta: parameters, a row for each of R networks. x: inputs of n examples for each network.
        """
        a, preactivations = x, []
        for layer, weights in zip(self.layers, self.unpack(theta), strict=True):
            a, z = layer.forward(weights, a)
            if not layer.is_linear:
                preactivations.append(z)
        return a.squeeze(-1), preactivations

    def draw(
        self, gain: float, active: float, twins: float, generator: torch.Generator
    ) -> Float[Tensor, " P"]:
        """Return initial parameters of one network, N(0, gain^2 / number of inputs), in float64.

        - gain: size of the weights.
        - active: fraction of each layer's nonlinear neurons, the first ones, whose initial weights
          are nonnegative. They are active for every nonnegative input.
        - twins: fraction of each layer's nonlinear neurons, the next ones, that are pairs. The
          neurons of a pair have nearly equal incoming and outgoing weights, so they are active for
          the same inputs. Their incoming weights have mean zero, so they are active for only some
          inputs.
        - generator: draws the numbers.

        Branch and skip of a residual block have half of the variance each. A diagonal skip counts
        as one input. A bias has the variance of the weights of its neuron.
        """
        drawn = [
            {
                name: torch.randn(shape, generator=generator, dtype=torch.float64)
                for name, shape in layer.shapes().items()
            }
            for layer in self.layers
        ]
        for entering, leaving in self._around_nonlinear(drawn):
            first = round(active * len(entering[0]))
            pairs = round(twins * len(entering[0])) // 2
            for weights in entering:
                weights[:first].abs_()
                if weights.ndim > 1:  # else on or off for all inputs, whose mean is far from zero
                    chosen = weights[first:][: 2 * pairs].flatten(1)
                    chosen -= chosen.mean(1, keepdim=True)
            for weights in entering + leaving:
                one, other = weights[first:][: 2 * pairs].unflatten(0, (pairs, 2)).unbind(1)
                other.mul_(TWIN_DISTANCE).add_(one)
        parts = []
        for layer, weights in zip(self.layers, drawn, strict=True):
            for name, normal in weights.items():
                share = 2 if name in ("W2", "Z", "z") else 1  # branch and skip are added
                inputs = layer.source.features if name == "b" else prod(normal.shape[1:])
                parts.append(gain / sqrt(share * inputs) * normal.flatten())
        return torch.cat(parts)

    def _around_nonlinear(self, weights: list[Weights]) -> Iterator[tuple[list, list]]:
        """Yield the weights into and out of the nonlinear neurons of each layer, as views.

        The first axis of each view is the neuron. weights: weights of one network.
        """
        for index, (layer, following) in enumerate(pairwise(self.layers)):
            layer_weights, next_ = weights[index], weights[index + 1]
            if layer.is_linear:
                continue
            if isinstance(layer, Residual):
                yield [layer_weights["W1"]], [layer_weights["W2"].mT]
                continue
            channels = following.source.channels
            leaving = [
                next_[name].unflatten(1, (channels, -1)).transpose(0, 1)
                for name in ("W", "W1", "Z")
                if name in next_
            ]
            yield [layer_weights[name] for name in ("W", "b") if name in layer_weights], leaving


def balance(network: Network, theta: Float[Tensor, " P"]) -> Float[Tensor, " P"]:
    """Change the parameters in place so that the last linear layers are balanced; return them.

    Balanced means D = 0, or W_l W_l^T = W_{l+1}^T W_{l+1}. Fully connected linear layers are
    changed from the layer before the output back to the first layer of another kind, which stays.
    Each becomes a matrix sigma u v^T of rank one, with unit vectors u and v. sigma is the norm of
    the output layer. u is the vector v of the next layer, and v is the direction of the layer's
    first row. The output layer, which has one row, stays, too.
    """
    weights = network.unpack(theta)  # views
    sigma, u = weights[-1]["W"].norm(), weights[-1]["W"][0]
    for layer, tensors in zip(reversed(network.layers[:-1]), reversed(weights[:-1]), strict=True):
        if not (isinstance(layer, Dense) and layer.is_linear):
            break
        v = tensors["W"][0].clone()
        tensors["W"][:] = sigma * torch.outer(u / u.norm(), v / v.norm())
        u = v
    return theta


LAYOUTS: dict[str, tuple[list[str], str, list[str]]] = {
    "linear": ([], "dense", []),
    "relu_then_linear": (["dense+", "dense+"], "dense", []),
    "conv": (["conv+", "conv", "conv"], "dense", []),
    "conv_free": (["conv+", "conv", "conv", "free"], "dense", []),
    "residual_identity": (["dense+", "identity+"], "identity", ["dense"]),
    "residual_diagonal": (["dense+", "diagonal+"], "diagonal", ["dense"]),
    "residual_free": (["dense+", "free+"], "free", ["dense"]),
    "mixed": (["conv", "free+"], "free", ["dense", "free"]),
}
"""Layers by architecture: the first layers, the repeated layer, and the last layers.

A linear layer of one output follows. +: the layer, or the branch of the residual block, is
nonlinear. Residual blocks have the name of their skip connection.
"""


def build(
    architecture: str,
    depth: int,
    width: int,
    channels: int,
    side: int,
    slope: float,
    bias: bool = False,
) -> Network:
    """Return the layered network of an architecture, for images of `side`^2 pixels.

    - architecture: a key of LAYOUTS, as "linear" or "conv".
    - depth: number of layers; a residual block is one layer.
    - width: number of neurons of every fully connected layer and residual block.
    - channels: number of channels of every convolution.
    - slope: slope of the nonlinear neurons for negative inputs (0: ReLU).
    - bias: whether fully connected layers have biases.

    Raises InputError for an unknown architecture.
    """
    begin, repeated, end = lookup("architecture", architecture, LAYOUTS)
    layers: list[Layer] = []
    source = Grid(1, side)
    for name in begin + [repeated] * (depth - 1 - len(begin) - len(end)) + end:
        kind, sigma = name.removesuffix("+"), slope if name.endswith("+") else LINEAR
        if kind == "dense":
            layers.append(Dense(source, width, sigma, bias))
        elif kind == "conv":
            stride = 1 if layers else KERNEL
            layers.append(Convolution(source, channels, KERNEL, stride, sigma))
        else:
            layers.append(Residual(source, width, width, kind, sigma))
        source = layers[-1].target
    return Network((*layers, Dense(source, 1, bias=bias)))
