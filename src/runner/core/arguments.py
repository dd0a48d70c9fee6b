"""Arguments of the subcommands: `key=value`, as everywhere on the command line."""

from collections.abc import Iterable
from pathlib import Path

from runner.core.errors import InputError, nearest
from runner.core.folders import outputs_at


def key_values(texts: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return the values by key. Raises InputError for a key that is unknown, or text that is no
    pair."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if key not in known or not equals:
            raise InputError(
                f"{text} is not key=value with a key known here: {nearest(key, known)}"
            )
        found[key] = value
    return found


def outputs_folder(texts: Iterable[str]) -> Path:
    """Return the folder of `outputs=...`, by default `outputs`.

    Raises InputError for any other key, and for a text that names no folder.
    """
    return outputs_at(key_values(texts, ["outputs"]).get("outputs", "outputs"))
