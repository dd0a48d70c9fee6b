"""Files of the user that a run reads. When their content changes, a command computes a new run.

The files are images (`data=stripes.npz`), or files that a user's study declares with `input_file`.
The parameter `checksums` has the SHA-256 of their contents. The program fills it in.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from runner.core.choices import OF_IMAGES, names_images
from runner.core.errors import InputError, beside
from runner.core.studies import StudyConfig, parameter


@dataclass(frozen=True)
class ReadsFiles(StudyConfig):
    """Base class of the parameters of a study that reads files of the user.

    Each path of a file is a parameter that `input_file` makes. A study that reads files and trains
    networks derives its class from both: `class Mine(ReadsFiles, TrainingConfig)`.
    """

    checksums: list[str] | None = parameter(
        "SHA-256 of each file that the run reads; the program fills it in", None
    )


def input_file(help: str, default: str | None = None) -> Any:
    """Return a dataclass field for a parameter that is the path of a file, in a `ReadsFiles`.

    The path is relative to the folder in which the command is given. help: the parameter's help
    text. default: the path, or None to read no file, if the field's type allows None.
    """
    return field(default=default, metadata={**parameter(help, default).metadata, "is_file": True})


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits.

    Raises InputError if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error


def _known_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, which is read once for all jobs of a sweep."""
    stat = os.stat(path) if os.path.isfile(path) else None
    return _read_once(path, stat and (stat.st_size, stat.st_mtime_ns))


@cache
def _read_once(path: Path, changed: tuple[int, int] | None) -> str:
    return sha256_of(path)


def resolved(config_class: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Find the user's files that are values of parameters; return the values that must be set.

    A file of images is searched in the folder of the command, then in `data_folder`. The result
    sets `data` to its name, `data_folder` to its folder, and `checksums` to the SHA-256 of each
    file. Without files the result is empty.

    config_class: the class of the parameters. values: parameters and settings by name. Raises
    InputError if a file is missing or cannot be read.
    """
    data, folder = values.get("data"), values.get("data_folder")
    if names_images(data) and "checksums" in values:
        places = [Path(data), *([Path(os.path.expanduser(folder)) / data] if folder else [])]
        path = next((path.absolute() for path in places if os.path.isfile(path)), None)
        if path is None:
            raise InputError(
                f"data={data}: there is no file {' or '.join(str(p.absolute()) for p in places)}"
                f"{beside(places, OF_IMAGES)}"
            )
        found, paths = {"data": path.name, "data_folder": str(path.parent)}, [path]
    else:
        found, paths = {}, []
    paths += map(Path, _declared(config_class, values))
    return {**found, "checksums": [*map(_known_sha256, paths)]} if paths else {}


def checked(config: StudyConfig) -> dict[str, str]:
    """Return the SHA-256 of each file that a run's parameters declare, by the file's path.

    Raises InputError if a file has changed since the parameters were read.
    """
    values = vars(config)
    contents = {path: sha256_of(Path(path)) for path in _declared(type(config), values)}
    if contents and [*contents.values()] != (values["checksums"] or [])[-len(contents) :]:
        raise InputError(f"{' or '.join(contents)} has changed: give the command again")
    return contents


def _declared(config_class: type, values: Mapping[str, Any]) -> list[str]:
    """Return the paths that are values of parameters declared with `input_file`."""
    names = [item.name for item in fields(config_class) if item.metadata.get("is_file")]
    return [values[name] for name in names if values[name] is not None]
