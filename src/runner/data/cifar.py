"""CIFAR-10 in its binary version: records of one label byte and 3072 pixel bytes in a tar archive.

The archive is read member by member and never unpacked to the disk; the pickled version of the
dataset, which would execute what it holds, is not read at all.
"""

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from runner.core.errors import InputError
from runner.data import CLASSES
from runner.data.files import fetch, reading

SHAPE = (3, 32, 32)  # channel, row, column
RECORD = 1 + 3 * 32 * 32
TRAIN = tuple(f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6))
TEST = ("cifar-10-batches-bin/test_batch.bin",)
LONGEST_MEMBER = 10_000 * RECORD


def read(
    source: Mapping[str, Any], folder: str | Path | None
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Pixels (n, 3, 32, 32) as bytes and labels (n,) of the training and of the test images.

    Raises InputError when the archive cannot be fetched or is not what it should be.
    """
    (path,) = fetch(source, folder)
    with reading(path), tarfile.open(path, "r:gz") as archive:
        members = {name: read_member(path, archive, name) for name in TRAIN + TEST}
    return _records(path, members, TRAIN), _records(path, members, TEST)


def read_member(path: Path, archive: tarfile.TarFile, name: str) -> bytes:
    """The content of one regular file of the archive.

    Raises InputError when it is something else (a link, say) or is larger than any part of
    CIFAR-10.
    """
    member = archive.getmember(name)
    if not member.isfile() or member.size > LONGEST_MEMBER:
        raise InputError(f"{path}: {name} is not a file of at most {LONGEST_MEMBER} bytes")
    return archive.extractfile(member).read()


def _records(path: Path, members: dict[str, bytes], names: tuple[str, ...]) -> tuple:
    parts = [parse_records(members[name], f"{path}: {name}") for name in names]
    pixels, labels = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    return pixels, labels


def parse_records(
    content: bytes, where: str
) -> tuple[UInt8[Tensor, "n 3 32 32"], Int[Tensor, " n"]]:
    """Pixels and labels out of the bytes of whole records.

    Raises InputError, beginning with `where`, when a record is cut short or a label is above 9.
    """
    if not content or len(content) % RECORD:
        raise InputError(f"{where} holds {len(content)} bytes, not whole records of {RECORD}")
    records = torch.frombuffer(bytearray(content), dtype=torch.uint8).reshape(-1, RECORD)
    labels = records[:, 0].long()
    if labels.max() >= CLASSES:
        raise InputError(f"{where} holds the label {int(labels.max())}; labels are 0 to 9")
    return records[:, 1:].reshape(-1, *SHAPE).contiguous(), labels
