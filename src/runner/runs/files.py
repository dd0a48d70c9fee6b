"""Replace files in one step."""

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PART = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.part")
"""The name of a file while it is written."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file `path` by one with this content, in one step.

    Raises OSError as `replaced` does.
    """
    with replaced(path) as part:
        part.write_bytes(content)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield the path of a new file; at the end of the block this file replaces `path` in one step.

    The caller writes the new file. If the block raises, `path` stays as it was. A link is followed,
    and the mode of the old file is preserved. If `path` is a pipe or a device, the yielded path is
    itself. Raises OSError if the old file is read-only, or the new one cannot be written.
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
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def remove_parts(folder: Path) -> None:
    """Remove the unfinished files that a killed process left in a folder.

    No process may be writing in the folder.
    """
    for path in folder.iterdir():
        if PART.fullmatch(path.name):
            path.unlink(missing_ok=True)
