"""Training data of study `low_rank_training`: images of the first K classes of a dataset."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.errors import InputError
from runner.data.datasets import Dataset, Images
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining

INPUT_NORM = 4.0
"""Root mean square norm of the images of a replicate, for all datasets.

It is the norm of digits with pixels in [0, 1] (3.9). Learning rates are thus comparable.
"""

LoadData = Callable[..., Dataset]
"""Function that loads a dataset, as `Context.load_data`."""


@dataclass(frozen=True)
class Problem:
    """The training images of each replicate, and the test images, which all replicates share.

    - x, y: n training images for each of R replicates, and their labels (R, n).
    - test_x, test_y: m test images and their labels (m,). Their norm does not matter: without
      biases it does not change the predicted class.

    Labels are -1 and 1 for two classes, and class numbers for more.
    """

    x: Float[Tensor, "R n channels height width"]
    y: Tensor
    test_x: Float[Tensor, "m channels height width"]
    test_y: Tensor

    def to(self, device: torch.device, dtype: torch.dtype) -> "Problem":
        """Return a copy on a device, in which images and labels -1 and 1 have this dtype.

        Class numbers stay integers.
        """
        parts = (self.x, self.y, self.test_x, self.test_y)
        kinds = (dtype if tensor.is_floating_point() else tensor.dtype for tensor in parts)
        return Problem(
            *(tensor.to(device, kind) for tensor, kind in zip(parts, kinds, strict=True))
        )


def draw_problem(config: LowRankTraining, load_data: LoadData) -> Problem:
    """Draw training images of the first K classes for each replicate; return them with test images.

    The training images of a replicate are scaled to the root mean square norm INPUT_NORM.
    load_data: loads a dataset, as `Context.load_data`.

    Raises InputError if the dataset is not available, has fewer classes, or has fewer than
    `samples` training images in these classes.
    """
    data = load_data(config.data, config.seed, config.checksums)
    if config.classes > data.classes:
        raise InputError(f"classes={config.classes}: {config.data} has {data.classes} classes")
    train, test = (of_classes(part, config.classes) for part in (data.train, data.test))
    if config.samples > len(train):
        raise InputError(
            f"samples={config.samples}: {config.data} has {len(train)} training images of the first"
            f" {config.classes} classes"
        )
    chosen = torch.stack(
        [
            torch.randperm(len(train), generator=config.stream(r, "images"))
            for r in range(config.replicates)
        ]
    )[:, : config.samples]
    x = train.pixels[chosen].double()
    norms = x.square().flatten(2).sum(-1).mean(-1).sqrt()
    scale = INPUT_NORM / norms.where(norms != 0, INPUT_NORM)  # black images remain black
    x *= scale[:, None, None, None, None]
    y, test_y = (
        labels_of(labels, config.classes) for labels in (train.labels[chosen], test.labels)
    )
    return Problem(x, y, test.pixels, test_y)


def of_classes(images: Images, classes: int) -> Images:
    """Return the images of the first `classes` classes."""
    wanted = images.labels < classes
    return Images(images.pixels[wanted], images.labels[wanted])


def labels_of(labels: Tensor, classes: int) -> Tensor:
    """Return labels as the losses need them: -1.0 and 1.0 for two classes, class numbers for more.

    labels: class numbers from 0. classes: number of classes.
    """
    return 2 * labels.double() - 1 if classes == 2 else labels
