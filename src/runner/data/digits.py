"""The handwritten digits of scikit-learn: 1797 images of 8 x 8 pixels, available offline."""

import hashlib

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.core.errors import InputError

CHECKSUM = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"
"""SHA-256 of all pixels (0 to 16), followed by all labels, one byte each."""

TEST_IMAGES = 261
"""The number of test images. 1536 images, twelve batches of 128, remain for training."""


def all_images() -> tuple[Float[Tensor, "1797 8 8"], Int[Tensor, " 1797"]]:
    """Return the pixels in [0, 1] (float64) and the labels of all images, in their original order.

    Raises InputError if the installed scikit-learn has other images than expected.
    """
    from sklearn.datasets import load_digits  # late import: slow, and most runs do not need it

    loaded = load_digits()
    content = loaded.images.astype("uint8").tobytes() + loaded.target.astype("uint8").tobytes()
    if (digest := hashlib.sha256(content).hexdigest()) != CHECKSUM:
        raise InputError(f"scikit-learn's digits have the SHA-256 {digest}, expected {CHECKSUM}")
    return torch.from_numpy(loaded.images / 16), torch.from_numpy(loaded.target).long()


def read() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return pixels (n, 1, 8, 8) and labels (n,) of the training images, then of the test images.

    Pixels are in [0, 1]. The split is random but always the same. Both parts have equal fractions
    of the classes.
    """
    from sklearn.model_selection import train_test_split  # late import, too

    pixels, labels = all_images()
    train, test = train_test_split(
        range(len(labels)), test_size=TEST_IMAGES, random_state=0, stratify=labels.numpy()
    )
    pixels = pixels.float()[:, None]
    return (pixels[train], labels[train]), (pixels[test], labels[test])
