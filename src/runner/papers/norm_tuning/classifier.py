"""Train a small ReLU classifier of scikit-learn's handwritten digits, a target of constructions."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.data import CLASSES
from runner.networks import initialization
from runner.papers.norm_tuning.network import Network, relu_network

PIXELS = 64
STEPS, LEARNING_RATE = 300, 1e-2  # full batch, Adam: almost all images are learned


def train_classifier(
    width: int,
    depth: int,
    generator: torch.Generator,
    images: Float[Tensor, "images 64"],
    classes: Int[Tensor, " images"],
) -> Network:
    """Return a fully connected ReLU classifier, trained on images, in float64.

    width: number of units in a hidden layer. depth: number of layers of weights. generator: draws
    the initial weights. images, classes: the training images and their labels.
    """
    sizes = [PIXELS, *[width] * (depth - 1), CLASSES]
    drawn = initialization.draw("he", sizes, [generator], torch.float64)
    weights, biases = ([tensor[0] for tensor in of_all] for of_all in drawn)
    network, parameters = relu_network(weights, biases), [*weights, *biases]
    optimizer = torch.optim.Adam([p.requires_grad_() for p in parameters], lr=LEARNING_RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), classes).backward()
        optimizer.step()
    return relu_network([W.detach() for W in weights], [b.detach() for b in biases])
