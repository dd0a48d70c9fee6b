"""Methods of a user, for `test_own_methods`: random ones, and wrong ones."""

import random

import numpy as np
import torch

from runner.networks.convolutional import ConvolutionalClassifier
from runner.training.optimizers import Optimizer


def noisy(Z):
    return Z / (1e-5 + Z.abs().amax(1, keepdim=True)) + 0.1 * random.random() * torch.randn_like(Z)


def nan_norm(Z):
    return Z / (Z - Z)


def jitter(Z):
    return torch.relu(Z) * (1 + 0.1 * np.random.rand())


def broken(Z):
    return None + Z.tanh()


def global_init(n_out, n_in, stream):
    return torch.randn(n_out, n_in, dtype=torch.float64) / n_in**0.5, torch.zeros(n_out)


def global_law(W, stream):
    return W.normal_()


def spread(tensors):
    return {"spread": torch.randn(3).std(), "first": tensors["W1"].flatten()[0]}


class Counted(Optimizer):
    """Counts in a number, adds a tensor at its first step, and draws noise."""

    def __init__(self, parameters):
        super().__init__(parameters)
        self.state = {"t": 0}

    def step(self, gradients, rates):
        self.state["t"] += 1
        total = self.state.setdefault("total", torch.zeros(len(rates)))
        total += 1.0
        for name, g in gradients.items():
            rate = rates.view(-1, *[1] * (g.dim() - 1)) / self.state["t"] ** 0.5
            noise = 1e-3 * torch.randn_like(g) * total.view_as(rate)
            self.parameters[name].sub_(rate * g + noise)


def steps(change):
    """Return an optimizer with the attributes t and kept, whose step calls `change(self)`."""

    class Wrong(Optimizer):
        def __init__(self, parameters):
            super().__init__(parameters)
            self.t, self.kept = 0, {"m": [torch.zeros(2)]}
            self.stream = torch.Generator()

        def step(self, gradients, rates):
            change(self)

    return Wrong


class Forward:
    """A network without a last hidden layer."""

    def __init__(self, channels, classes, norm, multiplier):
        self.channels = channels


class Two:
    """A network that is made with two arguments."""

    def __init__(self, channels, classes):
        self.channels = channels

    def hidden(self, x):
        """Return the inputs."""
        return x


def small_network(hidden):
    """Return an architecture of one convolution and a classifier, with this function `hidden`."""
    global Small  # `register` needs a class that can be imported

    class Small(ConvolutionalClassifier):
        def __init__(self, channels, classes, norm, multiplier):
            super().__init__()
            self.first = torch.nn.Conv2d(channels, 4, 1)
            self.classifier = torch.nn.Linear(4, classes)

        def hidden(self, x):
            return hidden(self, x)

    Small.__qualname__ = "Small"
    return Small
