"""The handwritten digits that come with scikit-learn: 1797 images of 8 x 8 pixels, always there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor

TEST_IMAGES = 261
"""Leaves 1536 images for training: twelve batches of 128."""


def read(
    source: Mapping[str, Any], folder: str | Path | None
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Pixels (n, 1, 8, 8) in [0, 1] and labels (n,) of the training and of the test images.

    The set comes in one piece; it is split by a fixed random choice with equal shares of the
    classes.
    """
    loaded = load_digits()
    pixels = (loaded.images / 16).astype("float32")[:, None]
    parts = train_test_split(
        pixels, loaded.target, test_size=TEST_IMAGES, random_state=0, stratify=loaded.target
    )
    train_pixels, test_pixels, train_labels, test_labels = map(torch.from_numpy, parts)
    return (train_pixels, train_labels.long()), (test_pixels, test_labels.long())
