"""Files in folders that others may write to as well.

What is written is a new file, under a name that nobody can foresee, which then takes the place of
the old one; what is appended to is a file of its own: no link is followed out of the folder. What
is read is a file, and no pipe that would be waited for.

A file that the user names is another matter (`write_named`): there a link is followed.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

PART = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.part")
"""What a file is called while it is written."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step: a reader sees the old file or the new one."""
    with replaced(path) as part:
        part.write_bytes(content)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """The file to write, which takes the place of `path` in one step once it is on the disk."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666))
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_named(path: Path, content: bytes) -> None:
    """Write the file that the user names, as an editor saves it.

    A link is followed, and mode, owner and hard links stay; a new file appears in one step. What is
    no regular file, a pipe or a terminal, is written into. Raises OSError for a read-only file.
    """
    place = Path(os.path.realpath(path))
    try:
        about = path.stat()
    except FileNotFoundError:
        return write_atomically(place, content)
    if stat.S_ISREG(about.st_mode) and not (about.st_mode & 0o222 and os.access(path, os.W_OK)):
        raise PermissionError(errno.EACCES, "it is read-only", str(path))
    is_alone = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
    if is_alone and about.st_uid == os.geteuid() and os.access(place.parent, os.W_OK):
        with replaced(place) as part:
            part.write_bytes(content)
            with suppress(PermissionError):
                os.chown(part, -1, about.st_gid)
            part.chmod(stat.S_IMODE(about.st_mode))
    else:
        path.write_bytes(content)


def remove_parts(folder: Path) -> None:
    """Remove what a killed process was writing; only for who alone writes in the folder."""
    for path in folder.iterdir():
        if PART.fullmatch(path.name):
            path.unlink(missing_ok=True)


def open_to_append(path: Path) -> TextIO:
    """Return the text file, to append to; a link, of either kind, or a pipe in its place is
    removed.

    Raises OSError when it cannot be written.
    """
    with suppress(FileNotFoundError):
        about = path.lstat()
        is_own = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
        if not (is_own or stat.S_ISDIR(about.st_mode)):
            path.unlink()
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o666), "a", encoding="utf-8", errors="backslashreplace")


@contextmanager
def open_to_read(path: Path) -> Iterator[BinaryIO]:
    """The file, to read. Raises OSError for what is no regular file: a pipe would never end."""
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        yield file


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)


def read(path: Path) -> bytes:
    """Return the content of a regular file; raises OSError as `open_to_read` does."""
    with open_to_read(path) as file:
        return file.read()
