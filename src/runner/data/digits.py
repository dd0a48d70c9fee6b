"""The handwritten digits that come with scikit-learn: 1797 images of 8 x 8 pixels, always there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

TEST_IMAGES = 261
"""Leaves 1536 images for training: twelve batches of 128."""


def all_images() -> tuple[Float[Tensor, "1797 8 8"], Int[Tensor, " 1797"]]:
    """Pixels in [0, 1], in float64, and labels of the whole set, in its own order."""
    from sklearn.datasets import load_digits  # late: slow to import, and most runs need none of it

    loaded = load_digits()
    return torch.from_numpy(loaded.images / 16), torch.from_numpy(loaded.target).long()


def read(
    source: Mapping[str, Any], folder: str | Path | None
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Pixels (n, 1, 8, 8) in [0, 1] and labels (n,) of the training and of the test images.

    The set comes in one piece; it is split by a fixed random choice with equal shares of the
    classes.
    """
    from sklearn.model_selection import train_test_split  # late, likewise

    pixels, labels = all_images()
    train, test = train_test_split(
        range(len(labels)), test_size=TEST_IMAGES, random_state=0, stratify=labels.numpy()
    )
    pixels = pixels.float()[:, None]
    return (pixels[train], labels[train]), (pixels[test], labels[test])
