"""CIFAR-10 in its binary version: records of one label byte and 3072 pixel bytes.

The files are in a tar archive or in its unpacked folder. The archive is read member by member and
never unpacked to the disk. The pickled version of the dataset is never read, because pickles can
execute code.
"""

import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from runner.core.errors import InputError
from runner.data.files import File, check_labels, fetch, find, places, read, reading

SHAPE = (3, 32, 32)  # channel, row, column
RECORD = 1 + 3 * 32 * 32
FOLDER = "cifar-10-batches-bin"
TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = ("test_batch.bin",)
LONGEST_MEMBER = 10_000 * RECORD


def files(source: Mapping[str, Any], folder: str | Path | None) -> list[File]:
    """Return the five files of training images, then the file of test images.

    source: where to find the files, as in `data.files.fetch`. folder: the folder that is searched
    first; None: the user's cache. Raises InputError if no folder has all files and the archive
    cannot be fetched or read.
    """
    folders = [path for root in places(source, folder) for path in (root / FOLDER, root)]
    paths = [path for name in TRAIN + TEST if (path := find(name, folders))]
    if len(paths) == len(TRAIN + TEST):
        return [read(path) for path in paths]
    (archive,) = fetch(source, folder)
    return read_archive(archive)


def read_archive(path: Path) -> list[File]:
    """Return the six files of CIFAR-10 in a tar archive, training images first.

    Raises InputError if the archive is damaged, or if a file is absent, not a regular file (a link,
    for example), or too large.
    """
    members: dict[str, File] = {}
    wanted = [f"{FOLDER}/{name}" for name in TRAIN + TEST]
    with reading(path), tarfile.open(path, "r:*") as archive:
        for member in archive:
            if member.name in wanted:
                where = f"{path}: {member.name}"
                if not member.isfile() or member.size > LONGEST_MEMBER:
                    raise InputError(f"{where} is not a file of at most {LONGEST_MEMBER} bytes")
                if content := archive.extractfile(member):  # never None for a regular file
                    members[member.name] = File(where, content.read())
    if missing := [name for name in wanted if name not in members]:
        raise InputError(
            f"{path} has no {missing[0]}, as the archive of CIFAR-10 has.\nIf its files are there"
            f" under other names (./{missing[0]}), unpack it: tar -xf {path} -C {path.parent}"
        )
    return [members[name] for name in wanted]


def parse(parts: Sequence[File]) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return pixels (n, 3, 32, 32) and labels (n,) of the training images, then of the test images.

    Pixels are bytes. parts: the files in the order of `files`. Raises InputError if a file has
    wrong content.
    """
    return _joined(parts[: len(TRAIN)]), _joined(parts[len(TRAIN) :])


def _joined(parts: Sequence[File]) -> tuple[Tensor, Tensor]:
    records = [parse_records(part) for part in parts]
    pixels, labels = (torch.cat(tensors) for tensors in zip(*records, strict=True))
    return pixels, labels


def parse_records(file: File) -> tuple[UInt8[Tensor, "n 3 32 32"], Int[Tensor, " n"]]:
    """Return the pixels, as bytes, and the labels of all n images in a file.

    Raises InputError with the file's name if an image is incomplete or a label is above 9.
    """
    where, content = file.where, file.content
    if not content or len(content) % RECORD:
        raise InputError(f"{where} holds {len(content)} bytes, not whole records of {RECORD}")
    records = torch.frombuffer(bytearray(content), dtype=torch.uint8).reshape(-1, RECORD)
    labels = records[:, 0].long()
    check_labels(where, labels)
    return records[:, 1:].reshape(-1, *SHAPE).contiguous(), labels
