"""Benchmark: Algorithm 1 of paper B on a stack of replicates against one network after another."""

from collections.abc import Iterator
from functools import partial
from math import cos, sin

import torch
from torch import nn

from bench.growth import Growth
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.core.streams import generators
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank.pretraining.config import Pretraining
from runner.papers.batch_norm_rank.pretraining.rank_ascent import (
    Minibatches,
    raise_layer_wise,
    turn,
)

REPLICATES, WIDTH, MINIBATCHES, SAMPLES, ANGLE = 5, 64, 25, 128, 0.05


def networks(depth: int) -> MLP:
    """A stack at PyTorch's initialisation; inputs have its width."""
    sizes = [WIDTH] * (depth + 1) + [10]
    weights, biases = draw("pytorch", sizes, generators(0, REPLICATES, "bench"))
    return MLP(weights, biases)


def stacked(start: MLP, minibatches: Minibatches) -> MLP:
    """The ascent on all networks at once."""
    network = start.map(lambda tensor: tensor)
    angles = torch.full((len(start),), ANGLE, dtype=minibatches.images.dtype)
    for _ in raise_layer_wise(network, minibatches, 1, turn(angles)):
        pass
    return network


def straightforward(start: MLP, minibatches: Minibatches) -> list[list[nn.Linear]]:
    """The ascent on one network after another, with torch's layers and automatic differentiation.

    A step is taken along the gradient, in the plane of it and the parameters.
    """
    trained = []
    for r in range(len(start)):
        layers = []
        hidden = [minibatches.images[chosen] for chosen in minibatches.indices[r]]
        for number in range(1, start.depth + 1):
            layer = nn.Linear(WIDTH, WIDTH, dtype=minibatches.images.dtype)
            layer.weight.data.copy_(start.parameters[f"W{number}"][r])
            layer.bias.data.copy_(start.parameters[f"b{number}"][r])
            for x in hidden:
                H = layer(x).relu()
                M = H.T @ H / len(H)
                bound = M.trace() ** 2 / M.square().sum()
                layer.zero_grad()
                bound.backward()
                theta = nn.utils.parameters_to_vector(layer.parameters()).detach()
                g = nn.utils.parameters_to_vector([p.grad for p in layer.parameters()])
                turned = cos(ANGLE) * theta + sin(ANGLE) * theta.norm() * g / g.norm()
                nn.utils.vector_to_parameters(turned, layer.parameters())
            with torch.no_grad():
                hidden = [layer(x).relu() for x in hidden]
                size = torch.stack([H.square().mean() for H in hidden]).mean().sqrt()
                for tensor in [layer.weight, layer.bias, *hidden]:
                    tensor /= size
            layers.append(layer)
        trained.append(layers)
    return trained


def require_same_ascent(start: MLP, minibatches: Minibatches) -> None:
    """Both ways end at the same weights of the first layer; AssertionError otherwise.

    In float64, since every layer amplifies rounding, about a millionfold.
    """
    exact = Minibatches(minibatches.images.double(), minibatches.indices)
    work = (start.map(torch.Tensor.double), exact)
    for W, layers in zip(stacked(*work).parameters["W1"], straightforward(*work), strict=True):
        torch.testing.assert_close(W, layers[0].weight.detach(), rtol=1e-4, atol=1e-6)


def compare() -> Iterator[Comparison]:
    """Depths 8 and 32."""
    stream = generators(0, 1, "bench")[0]
    images = torch.randn(REPLICATES * MINIBATCHES * SAMPLES, WIDTH, generator=stream)
    indices = torch.arange(len(images)).view(REPLICATES, MINIBATCHES, SAMPLES)
    minibatches = Minibatches(images, indices)
    rate = matrix_rate(torch.float32)
    for depth in (8, 32):
        work = (networks(depth), minibatches)
        require_same_ascent(*work)
        # The layer and M, forward and backward, and the layer once more.
        products = REPLICATES * depth * MINIBATCHES * (2 + 2 + 1)
        yield Comparison(
            study="pretraining",
            work=f"ascent, R={REPLICATES}, width {WIDTH}, depth {depth}, M={MINIBATCHES}",
            straightforward=median_seconds(partial(straightforward, *work), 3),
            ours=median_seconds(partial(stacked, *work)),
            floor=products * 2 * WIDTH**2 * SAMPLES / rate,
        )


GROWTH = Growth(
    Pretraining(
        depth=8,
        epochs=1,
        learning_rates=[0.1],
        selection_replicates=1,
        methods=["he", "pretrained"],
        pretraining_steps=[25],
        angles=[0.1],
    ),
    {
        "depth": [8, 16, 32],
        "width": [64, 128, 256],
        "samples": [256, 512, 1024],
        "replicates": [5, 10, 20],
    },
)
