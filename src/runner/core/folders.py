"""The folder of outputs: its name, and whether it can be read and written."""

import os
from pathlib import Path

from runner.core.errors import InputError


def at_home(argument: str) -> str:
    """Return an argument `key=~/folder` in which the path of the home folder replaces `~`.

    Other arguments are returned unchanged.
    """
    key, equals, value = argument.partition("=")
    return f"{key}={os.path.expanduser(value)}" if value.startswith("~") else argument


def outputs_at(text: str) -> Path:
    """Return the folder that `outputs=<text>` names; `~` is the home folder.

    Raises InputError if the text is empty, not printable, or names an unknown home folder.
    """
    expanded = os.path.expanduser(text)
    if not text.strip() or not text.isprintable() or expanded.startswith("~"):
        raise InputError(f"outputs={text!r} is not a folder: give outputs=FOLDER")
    return Path(expanded)


def require_readable(outputs: Path) -> None:
    """Raise InputError if the folder of outputs does not exist or cannot be listed."""
    try:
        with os.scandir(outputs):
            pass
    except OSError as error:
        raise _unusable(outputs, error) from error


def require_writable(outputs: Path, inside: Path | None = None) -> None:
    """Make the folder of outputs if it does not exist.

    inside: a folder within the folder of outputs; it is made as well. Raises InputError if a folder
    cannot be made or read, or if no file can be written into `inside`.
    """
    try:
        outputs.mkdir(parents=True, exist_ok=True)
        require_readable(outputs)
        if inside is not None:
            inside.mkdir(parents=True, exist_ok=True)
            if not os.access(inside, os.W_OK | os.X_OK):
                raise PermissionError(None, "no file can be written there")
    except OSError as error:
        raise _unusable(outputs, error, inside) from error


def _unusable(outputs: Path, error: OSError, inside: Path | None = None) -> InputError:
    """Return the error for a folder that cannot be used. It names a file in place of a folder."""
    place = inside or outputs
    file = next((path for path in (place, *place.parents) if os.path.isfile(path)), None)
    why = f"{file} is a file, not a folder" if file else error.strerror
    return InputError(f"outputs={outputs} cannot be used ({why})")
