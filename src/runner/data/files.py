"""Find or fetch the files of datasets, decompress them, and check their content."""

import contextlib
import gzip
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pooch
from jaxtyping import Integer
from torch import Tensor

from runner.core.errors import InputError
from runner.data import CLASSES

GZIP = b"\x1f\x8b"
"""First bytes of a file compressed by gzip."""

LARGEST = 2**28
"""The largest number of bytes that is read from a file. Fashion-MNIST's largest file has 47
million."""


@dataclass(frozen=True)
class File:
    """The content of a file, which is on the disk or in an archive.

    where: the path of the file, as error messages show it.
    """

    where: str
    content: bytes

    @cached_property
    def sha256(self) -> str:
        """Return the SHA-256 of the content in hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()


def default_folder() -> Path:
    """Return the user's cache folder on this platform (`~/.cache/theory-runner` on Linux)."""
    return Path(pooch.os_cache("theory-runner"))


def own_folder(folder: str | Path | None) -> Path:
    """Return the folder that is searched first and gets downloads.

    folder: the user's choice; None: the user's cache.
    """
    return default_folder() if folder is None else Path(os.path.expanduser(folder)).absolute()


def places(source: Mapping[str, Any], folder: str | Path | None) -> list[Path]:
    """Return the folders in which files are searched, in order.

    They are `own_folder(folder)`, and then the folders of system packages in `source["packages"]`.
    """
    return [own_folder(folder), *map(Path, source.get("packages", []))]


def find(name: str, folders: Sequence[Path]) -> Path | None:
    """Return the path of the first file `name` or `name.gz` in these folders; None without one."""
    plain = name.removesuffix(".gz")
    paths = [folder / file for folder in folders for file in (plain, f"{plain}.gz")]
    return next((path for path in paths if os.path.isfile(path)), None)


def fetch(source: Mapping[str, Any], folder: str | Path | None) -> list[Path]:
    """Return the paths of the dataset's files, in the order of `source["files"]`.

    Missing files are downloaded into `own_folder(folder)`. source: a mapping with three keys.

    - `url`: the address of the folder with the files;
    - `files`: a list of `{name: ..., checksum: md5:<hex> or sha256:<hex>}`. The checksum is of the
      file as it is downloaded;
    - `packages`: further folders that may have the files.

    Raises InputError if a file is missing and cannot be downloaded.
    """
    folders = places(source, folder)
    missing = [entry for entry in source["files"] if find(entry["name"], folders) is None]
    for entry in missing:
        try:
            _download(source["url"], entry, folders[0])
        except Exception as error:  # the network may raise errors of any kind
            names = ", ".join(entry["name"] for entry in missing)
            raise InputError(
                f"{names} cannot be fetched from {source['url']} ({_reason(error)}).\n"
                f"Put these files, compressed or not, into {folders[0]}, or name their folder with"
                " data_folder=..."
            ) from error
    return [path for entry in source["files"] if (path := find(entry["name"], folders))]


def _download(url: str, entry: Mapping[str, str], folder: Path) -> None:
    """Download one file and compare its checksum."""
    pooch.get_logger().setLevel("WARNING")
    pooch.retrieve(
        url=url.rstrip("/") + "/" + entry["name"],
        known_hash=entry["checksum"],
        fname=entry["name"],
        path=folder,
    )


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:160] if lines else type(error).__name__


def read(path: Path) -> File:
    """Return the file at `path`. Content that is compressed by gzip is decompressed.

    Raises InputError if the file is damaged or has more than `LARGEST` bytes.
    """
    with reading(path), open(path, "rb") as file:
        compressed = file.read(2) == GZIP
    with reading(path), (gzip.open if compressed else open)(path, "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise InputError(f"{path} holds more than {LARGEST} bytes: it is no file of a dataset")
    return File(str(path), content)


def check(name: str, files: Sequence[File], checksums: Sequence[str]) -> None:
    """Raise InputError if the files of a dataset do not have the expected SHA-256 checksums.

    Raises InputError also if the number of checksums is not the number of files. name: the name of
    the dataset, for the message.
    """
    if len(checksums) != len(files):
        raise InputError(
            f"checksums has {len(checksums)} entries, but {name} has {len(files)} files"
        )
    for file, expected in zip(files, checksums, strict=True):
        if file.sha256 != expected:
            raise InputError(
                f"{file.where} does not hold what {name} has there: SHA-256 {file.sha256}, expected"
                f" {expected}.\nPut the right files into a folder and give it as data_folder=..."
            )


def check_labels(where: str, labels: Integer[Tensor, " n"]) -> None:
    """Raise InputError if a label is larger than 9 and belongs to no class.

    where: the path of the labels' file, for the message.
    """
    if (largest := int(labels.max())) >= CLASSES:
        raise InputError(f"{where} holds the label {largest}; labels are 0 to {CLASSES - 1}")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of reading or decompressing a file within the block into an InputError.

    path: the path of the file, for the message.
    """
    import tarfile
    import zlib

    try:
        yield
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise InputError(
            f"{path} is damaged ({_reason(error)}).\n"
            "Put an undamaged copy into a folder and give the folder as data_folder=..."
        ) from error
