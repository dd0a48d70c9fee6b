"""The handwritten digits of scikit-learn: 1797 images of 8 x 8 pixels, available offline.

Importing scikit-learn would take a second, so its file is read directly.
"""

import hashlib
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.core.errors import InputError

CHECKSUM = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"
"""SHA-256 of all pixels, 0..16, followed by all labels, one byte each."""

TEST_IMAGES = 261
"""Number of test images; 1536 remain for training, twelve batches of 128."""

ORDER = Path(__file__).with_name("digits_order.txt")
"""The training images, then the test images: a random choice with equal fractions of the classes,
`train_test_split(range(1797), test_size=261, random_state=0, stratify=labels)` of scikit-learn."""


def all_images() -> tuple[Float[Tensor, "1797 8 8"], Int[Tensor, " 1797"]]:
    """Return pixels in [0, 1], in float64, and labels of all images, in their original order.

    Raises InputError if scikit-learn has other images than expected.
    """
    file = distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz")
    table = np.loadtxt(str(file), delimiter=",")
    images, labels = table[:, :-1], table[:, -1]
    content = images.astype("uint8").tobytes() + labels.astype("uint8").tobytes()
    if (checksum := hashlib.sha256(content).hexdigest()) != CHECKSUM:
        raise InputError(f"scikit-learn's digits have the SHA-256 {checksum}, expected {CHECKSUM}")
    return torch.from_numpy(images / 16).view(-1, 8, 8), torch.from_numpy(labels).long()


def read() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return pixels (n, 1, 8, 8) in [0, 1] and labels (n,) of the training and the test images."""
    pixels, labels = all_images()
    pixels = pixels.float()[:, None]
    order = torch.tensor([int(index) for index in ORDER.read_text().split()])
    train, test = order[:-TEST_IMAGES], order[-TEST_IMAGES:]
    return (pixels[train], labels[train]), (pixels[test], labels[test])
