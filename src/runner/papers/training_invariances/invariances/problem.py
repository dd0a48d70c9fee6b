"""Training examples of study `invariances`: separable, with labels -1 and 1."""

from collections.abc import Callable
from math import ceil

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.choices import lookup
from runner.core.errors import InputError
from runner.data.datasets import Dataset
from runner.papers.training_invariances.invariances.config import Invariances

SIDE = 8
"""Pixels along an image's side, of the digits and of the Gaussian images."""

OFFSET = 0.5
"""Mean of a Gaussian pixel, in standard deviations.

As with images, neurons with nonnegative weights are then active for every example. Theorem 1 is
about these neurons.
"""

MARGIN = 3.0
"""Smallest distance of a Gaussian example to the hyperplane, in standard deviations of a pixel."""

INPUT_NORM = 1.0
"""Root mean square norm of the inputs.

For this norm gradient descent is stable up to a learning rate of about 0.02 at width 16, and 0.005
at width 32, for all architectures.
"""

LoadData = Callable[[str, int], Dataset]
"""Function that loads a dataset, as `Context.load_data`."""

Examples = tuple[Float[Tensor, "R n d"], Float[Tensor, "R n"]]


def draw_examples(config: Invariances, load_data: LoadData) -> Examples:
    """Return inputs and labels of all replicates, in float64 on the CPU.

    Labels alternate between 1 and -1. Inputs have the root mean square norm `INPUT_NORM`.
    load_data: loads a dataset, as `Context.load_data`. Raises InputError for unknown data, or if
    there are fewer digits than `samples`.
    """
    x, y = lookup("data", config.data, DATA)(config, load_data)
    norms = x.square().sum(-1).mean(-1).sqrt()
    return INPUT_NORM * x / norms[:, None, None], y


def gaussian(config: Invariances, load_data: LoadData) -> Examples:
    """Return Gaussian images with mean `OFFSET` and their labels, separated by a hyperplane.

    The random hyperplane contains the origin and the mean, so the examples are separable without a
    bias. Labels alternate between 1 and -1. An image on the wrong side for its label is mirrored at
    the hyperplane. Then each image is moved away from the hyperplane by `MARGIN`. load_data is not
    used.
    """
    inputs, labels = [], []
    for replicate in range(config.replicates):
        stream = config.stream(replicate, "examples")
        normal = torch.randn(config.samples, SIDE**2, generator=stream, dtype=torch.float64)
        teacher = torch.randn(SIDE**2, generator=stream, dtype=torch.float64)
        teacher = (teacher - teacher.mean()) / (teacher - teacher.mean()).norm()
        wanted = alternating(config.samples)
        distance = normal @ teacher
        moved = wanted * (distance.abs() + MARGIN) - distance
        inputs.append(normal + moved[:, None] * teacher + OFFSET)
        labels.append(wanted)
    return torch.stack(inputs), torch.stack(labels)


def digits(config: Invariances, load_data: LoadData) -> Examples:
    """Return images of two digits and their labels, a separate selection for each replicate.

    Labels alternate between 1 and -1. load_data: loads a dataset, as `Context.load_data`. Raises
    InputError if a class has fewer images than half of the samples.
    """
    images = load_data("digits", config.seed).train
    share = ceil(config.samples / 2)
    inputs = []
    for replicate in range(config.replicates):
        chosen = []
        for digit in config.classes:
            members = images.flat()[images.labels == digit].double()
            if len(members) < share:
                raise InputError(
                    f"samples={config.samples}: half of the samples show the digit {digit},"
                    f" but there are only {len(members)} images of it"
                )
            stream = config.stream(replicate, f"digit {digit}")
            chosen.append(members[torch.randperm(len(members), generator=stream)[:share]])
        inputs.append(torch.stack(chosen, dim=1).flatten(0, 1)[: config.samples])
    x = torch.stack(inputs)
    return x, alternating(config.samples).expand(config.replicates, -1)


DATA = {"gaussian": gaussian, "digits": digits}
"""Functions that draw examples, by the name of the data."""


def alternating(samples: int) -> Float[Tensor, " n"]:
    """Return n labels 1, -1, 1, -1, ... for n = `samples`."""
    return 1 - 2 * (torch.arange(samples) % 2).double()
