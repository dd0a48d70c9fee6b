"""Files of downloaded datasets: found in a folder or fetched into it, and always checked."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pooch

from runner.core.errors import InputError


def default_folder() -> Path:
    """The user's cache, as the platform has it (`~/.cache/theory-runner` on Linux)."""
    return Path(pooch.os_cache("theory-runner"))


def fetch(source: Mapping[str, Any], folder: str | Path | None) -> list[Path]:
    """The dataset's files in the order of `source["files"]`, each with the checksum stated there.

    source: `{url: <address>, files: [{name: ..., checksum: md5:<hex> or sha256:<hex>}, ...]}`. A
    file that is not in `folder` is downloaded. Raises InputError when a file is absent and cannot
    be fetched, or when its checksum is not the stated one.
    """
    place = default_folder() if folder is None else Path(folder).expanduser()
    missing = [entry for entry in source["files"] if not (place / entry["name"]).exists()]
    for entry in missing:
        try:
            _download(source["url"], entry, place)
        except Exception as error:  # whatever the network, or what lies before it, comes up with
            names = ", ".join(entry["name"] for entry in missing)
            raise InputError(
                f"{names} cannot be fetched from {source['url']} ({_reason(error)}).\n"
                f"Put these files into {place}, or name their folder with data_folder=..."
            ) from error
    paths = [place / entry["name"] for entry in source["files"]]
    for path, entry in zip(paths, source["files"], strict=True):
        check(path, entry["checksum"])
    return paths


def _download(url: str, entry: Mapping[str, str], place: Path) -> None:
    pooch.get_logger().setLevel("WARNING")
    pooch.retrieve(
        url=url.rstrip("/") + "/" + entry["name"],
        known_hash=entry["checksum"],
        fname=entry["name"],
        path=place,
    )


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:160] if lines else type(error).__name__


def check(path: Path, checksum: str) -> None:
    """Raise InputError unless the file at `path` has this checksum (`md5:<hex>`)."""
    algorithm, _, expected = checksum.partition(":")
    try:
        found = pooch.file_hash(str(path), alg=algorithm)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error
    if found != expected:
        raise InputError(
            f"{path} is not the file expected: its {algorithm} is {found}, not {expected}.\n"
            "Remove it to have it fetched again, or put the right one there."
        )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a decompressor says of a damaged file into an InputError that names it."""
    import tarfile
    import zlib

    try:
        yield
    except (OSError, EOFError, zlib.error, tarfile.TarError, KeyError) as error:
        raise InputError(f"{path} is damaged ({_reason(error)}).\nReplace it.") from error
