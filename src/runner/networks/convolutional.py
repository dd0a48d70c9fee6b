"""Normalization, width scaling and initialization of the convolutional classifiers.

These networks are torch modules. They are trained one at a time, since a large network needs the
whole machine. All have a method `hidden(x)`, which returns the last hidden representation, and
`classifier`, a linear layer after it.
"""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from runner.core.choices import lookup
from runner.networks.initialization import INITIALIZATIONS
from runner.networks.mlp import MODES, Mode
from runner.networks.normalization import (
    NORMALIZATIONS,
    OfSample,
    batch_norm,
    batch_norm_no_mean,
)
from runner.networks.own_calls import method_of


class BatchNorm(nn.Module):
    """Batch normalization with a scale and a shift for each channel.

    The attribute `mode` chooses the statistics, see `networks.mlp.Mode`. channels: the number of
    channels. centred: whether the mean is subtracted. If not, inputs are only divided by the root
    mean square over the batch, as in paper B's Eq. (2).
    """

    mean: Tensor  # only if the mean is subtracted
    variance: Tensor

    def __init__(self, channels: int, centred: bool) -> None:
        super().__init__()
        self.mode: Mode = "train"
        self.centred = centred
        self.scale = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))
        if centred:
            self.register_buffer("mean", torch.zeros(channels))

    def train(self, mode: bool = True) -> "BatchNorm":
        """Set the mode to `train`, or to `evaluate` if `mode` is false; return the layer.

        In the mode `train` the layer uses and records statistics of the batch. In the mode
        `evaluate` it uses the recorded statistics.
        """
        self.mode = "train" if mode else "evaluate"
        return super().train(mode)

    def forward(self, x: Float[Tensor, "N C *rest"]) -> Float[Tensor, "N C *rest"]:
        """Return the normalized batch."""
        remembered, training = lookup("mode", self.mode, MODES)
        if self.centred:
            running = (self.mean, self.variance) if remembered else None
            return batch_norm(x, self.scale, self.shift, running, training)
        variance = self.variance if remembered else None
        return batch_norm_no_mean(x, self.scale, self.shift, variance, training)


class SampleNorm(nn.Module):
    """Normalization of each sample alone, with a scale and a shift for each channel.

    channels: the number of channels. of_sample: the function that normalizes, see `OfSample`.
    """

    def __init__(self, channels: int, of_sample: OfSample) -> None:
        super().__init__()
        self.of_sample = of_sample
        self.scale = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Float[Tensor, "N C *rest"]) -> Float[Tensor, "N C *rest"]:
        """Return the normalized samples."""
        shape = (1, -1, *[1] * (x.ndim - 2))
        return torch.addcmul(self.shift.view(shape), self.of_sample(x), self.scale.view(shape))


def normalization(name: str, channels: int) -> nn.Module:
    """Return a new normalization layer.

    name: a name in `NORMALIZATIONS`, or one that the user has registered. channels: the number of
    channels of the layer's inputs. Raises InputError for an unknown name.
    """
    norm = method_of("normalization", name, NORMALIZATIONS)
    if norm is None:
        return nn.Identity()
    return BatchNorm(channels, norm) if isinstance(norm, bool) else SampleNorm(channels, norm)


def scaled(channels: int, multiplier: float) -> int:
    """Return `channels * multiplier`, rounded to an integer that is at least 1."""
    return max(1, round(channels * multiplier))


class ConvolutionalClassifier(nn.Module, ABC):
    """Base class of image classifiers: a linear layer `classifier` on features `hidden(x)`."""

    classifier: nn.Linear

    @abstractmethod
    def hidden(self, x: Float[Tensor, "N channels height width"]) -> Float[Tensor, "N d"]:
        """Return the last hidden representation, with samples as rows."""

    def forward(self, x: Float[Tensor, "N channels height width"]) -> Float[Tensor, "N classes"]:
        """Return the logits of the images x."""
        return self.classifier(self.hidden(x))

    def set_mode(self, mode: Mode) -> None:
        """Set which statistics all batch normalization layers use.

        mode: `train` uses statistics of the batch, and records them. `probe` uses statistics of the
        batch. `evaluate` uses the recorded statistics.
        """
        for module in self.modules():
            if isinstance(module, BatchNorm):
                module.mode = mode


@torch.no_grad()
def initialize(network: nn.Module, init: str, stream: Generator) -> None:
    """Draw all weights and biases of a network's convolutions and linear layers, in place.

    - init: a name in `INITIALIZATIONS`, or one that the user has registered. For `pytorch` the
      distribution is as in `torch.nn.Conv2d`.
    - stream: the random generator.

    The number of inputs of a convolution is `channels * height * width` of its kernel. The weights
    do not depend on whether layers have biases or normalization. Raises InputError for an unknown
    name.
    """
    drawn = method_of("init", init, INITIALIZATIONS)
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            n_out, n_in = len(module.weight), module.weight[0].numel()
            W, b = drawn(n_out, n_in, stream)
            module.weight.copy_(W.view_as(module.weight))
            if module.bias is not None:
                module.bias.copy_(b)
