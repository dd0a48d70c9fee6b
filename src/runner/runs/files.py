"""Read files, and replace them in one step."""

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runner.core.errors import InputError

PART = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.part")
"""The name of a file while it is written."""


def read(path: Path, size: int = -1) -> bytes:
    """Return the content of a file.

    size: how many bytes to read, from the beginning; -1: all. Raises OSError if the file cannot be
    read, or is a folder, a pipe or a device, of which the last two might never end.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    with path.open("rb") as file:
        return file.read(size)


def require_replaceable(*paths: Path) -> None:
    """Raise InputError if a folder, a pipe or a device has the path of a file to be written."""
    for path in paths:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is no regular file: remove it")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file in one step, so that it never has only a part of its content.

    path: the file; an old file is replaced. Raises OSError as `replaced` does.
    """
    with replaced(path) as part:
        part.write_bytes(content)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield the path of a new file, which replaces the file `path` at the end of the block.

    The caller writes the new file within the block. If the block raises an exception, `path` is
    unchanged. If `path` is a link, its target is replaced. The new file gets the mode of the old
    one. If `path` is a pipe or a device, the yielded path is `path` itself. Raises OSError if the
    old file is read-only, or the new one cannot be written.
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.is_file() else None
    if mode is None and target.exists():
        yield target
        return
    if mode is not None and not mode & 0o222:
        raise PermissionError(errno.EACCES, "it is read-only", str(path))
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        if mode is not None:
            part.chmod(mode)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException as error:
        with suppress(OSError):  # the folder may be read-only
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(part):
            error.filename = str(path)
        raise


def is_disk_full(error: BaseException) -> bool:
    """Return whether an exception means that a disk, or the user's part of it, is full.

    The libraries that write tensors raise exceptions of their own, with the system's message.
    """
    codes = errno.ENOSPC, errno.EDQUOT
    return getattr(error, "errno", None) in codes or any(
        os.strerror(code) in str(error) for code in codes
    )


def remove_parts(folder: Path) -> None:
    """Remove the unfinished files that a killed process left in a folder.

    No process may write into the folder at the same time.
    """
    for path in folder.iterdir():
        if PART.fullmatch(path.name):
            path.unlink(missing_ok=True)
