"""IDX files (MNIST, Fashion-MNIST): a magic number, the dimensions, then bytes; gzip-compressed."""

import gzip
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Tensor

from runner.core.errors import InputError
from runner.data.files import fetch, reading

UNSIGNED_BYTE = 0x08

LARGEST = 2**30
"""Bytes of a file that are read at most: Fashion-MNIST has 47 million."""


def read(
    source: Mapping[str, Any], folder: str | Path | None
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Pixels (n, 1, height, width) as bytes and labels (n,) of the training and of the test images.

    `source["files"]` are: training images, training labels, test images, test labels. Raises
    InputError when a file cannot be fetched or is not what it should be.
    """
    paths = fetch(source, folder)
    return _labelled(*paths[:2]), _labelled(*paths[2:])


def _labelled(images_path: Path, labels_path: Path) -> tuple[Tensor, Tensor]:
    images, labels = read_idx(images_path, dimensions=3), read_idx(labels_path, dimensions=1)
    if len(images) != len(labels):
        raise InputError(
            f"{images_path} holds {len(images)} images but {labels_path} {len(labels)} labels"
        )
    return images[:, None], labels.long()


def read_idx(path: Path, dimensions: int) -> UInt8[Tensor, "..."]:
    """The array of bytes in a gzip-compressed IDX file.

    The header is `0, 0, type, number of dimensions`, then each dimension as a big-endian 32-bit
    number. Raises InputError, with the file's name, when the file is damaged, cut short or too
    long, or holds another type or number of dimensions.
    """
    with reading(path), gzip.open(path) as file:
        header = file.read(4)
        if header != bytes([0, 0, UNSIGNED_BYTE, dimensions]):
            raise InputError(
                f"{path} has the magic number {header.hex()}; an IDX file of bytes in {dimensions}"
                f" dimensions begins with 000008{dimensions:02d}"
            )
        sizes = file.read(4 * dimensions)
        shape = [int.from_bytes(sizes[4 * i : 4 * i + 4], "big") for i in range(dimensions)]
        if prod(shape) > LARGEST:
            raise InputError(f"{path} promises {' x '.join(map(str, shape))} bytes.\nReplace it.")
        content = file.read(prod(shape))
        complete = len(sizes) == 4 * dimensions and len(content) == prod(shape)
        if not complete or file.read(1):
            raise InputError(
                f"{path} promises {' x '.join(map(str, shape))} bytes and holds"
                f" {'fewer' if not complete else 'more'}.\nReplace it."
            )
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).reshape(shape)
