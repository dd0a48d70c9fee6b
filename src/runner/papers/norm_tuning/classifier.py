"""A small ReLU classifier of scikit-learn's handwritten digits.

The studies of paper A copy this classifier into networks with frozen random weights.
"""

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
    """Train a fully connected ReLU classifier on digits, and return it in float64.

    The training is 300 steps of Adam on all images at once, with the cross-entropy loss.

    - width: number of units of each hidden layer.
    - depth: number of layers of weights.
    - generator: draws the initial weights.
    - images, classes: the training images (64 pixels each) and their labels, 0 to 9.
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
