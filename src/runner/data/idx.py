"""Files in the format IDX (MNIST, Fashion-MNIST): a magic number, the dimensions, then bytes."""

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Tensor

from runner.core.errors import InputError
from runner.data.files import File, check_labels, fetch, read

UNSIGNED_BYTE = 0x08


def files(source: Mapping[str, Any], folder: str | Path | None) -> list[File]:
    """Return the files of training images, training labels, test images and test labels.

    source: where to find the files, as in `data.files.fetch`. folder: the folder that is searched
    first; None: the user's cache. Raises InputError if a file cannot be fetched or read.
    """
    return [read(path) for path in fetch(source, folder)]


def parse(parts: Sequence[File]) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return pixels (n, 1, height, width) and labels (n,) of the training, then of the test images.

    Pixels are bytes. parts: the files in the order of `files`. Raises InputError if a file has
    wrong content, or if test images have another size than training images.
    """
    train, test = _labelled(*parts[:2]), _labelled(*parts[2:])
    sizes = [" x ".join(map(str, pixels.shape[2:])) for pixels, _ in (train, test)]
    if sizes[0] != sizes[1]:
        raise InputError(
            f"{parts[0].where} holds images of {sizes[0]} pixels but {parts[2].where} of {sizes[1]}"
        )
    return train, test


def _labelled(pixels: File, classes: File) -> tuple[Tensor, Tensor]:
    """Return images (N, 1, height, width) and labels.

    Raises InputError if their numbers differ, or if a label belongs to no class.
    """
    images, labels = parse_idx(pixels, dimensions=3), parse_idx(classes, dimensions=1)
    if len(images) != len(labels):
        raise InputError(
            f"{pixels.where} holds {len(images)} images but {classes.where} {len(labels)} labels"
        )
    check_labels(classes.where, labels)
    return images[:, None], labels.long()


def parse_idx(file: File, dimensions: int) -> UInt8[Tensor, "..."]:
    """Return the array of bytes in an IDX file. dimensions: how many axes the array must have.

    The header of the file is `0, 0, type, number of axes`, then the length of each axis as a
    big-endian 32-bit number. Raises InputError with the file's name if the file is empty,
    incomplete or too long, or has another type or number of axes.
    """
    where, content = file.where, file.content
    header, start = content[:4], 4 + 4 * dimensions
    if header != bytes([0, 0, UNSIGNED_BYTE, dimensions]):
        raise InputError(
            f"{where} has the magic number {header.hex()}; an IDX file of bytes in {dimensions}"
            f" dimensions begins with 000008{dimensions:02d}"
        )
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    size = " x ".join(map(str, shape))
    if len(content) != start + prod(shape):
        held = "fewer" if len(content) < start + prod(shape) else "more"
        raise InputError(f"{where} should have {size} bytes of data, but has {held}")
    if 0 in shape:
        raise InputError(f"{where} is empty: {size} bytes")
    return torch.frombuffer(bytearray(content[start:]), dtype=torch.uint8).reshape(shape)
