"""Arguments `key=value` of the subcommands."""

from collections.abc import Iterable
from pathlib import Path

from runner.core.errors import InputError, nearest
from runner.core.folders import outputs_at

PICTURE = {
    "style": "style=screen|paper|FILE",
    "size": "size=column|page|WIDTHxHEIGHT in inches",
    "series": "series=[sgd,dense]: only these curves",
    "where": "where='width <= 200': only these rows",
    "header": "header=false",
    "out": "out=FILE.pdf, .png or .svg",
}
"""The arguments of `runner show` that change the picture, and how to type them."""


def key_values(texts: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return the values of arguments `key=value`, by key.

    texts: the arguments. known: the keys that are allowed. Raises InputError for an unknown key,
    and for an argument without `=`.
    """
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if key not in known or not equals:
            raise InputError(
                f"{text} is not key=value with a key known here: {nearest(key, known)}"
            )
        values[key] = value
    return values


def outputs_folder(texts: Iterable[str]) -> Path:
    """Return the folder of outputs that the arguments name: `outputs=FOLDER`, by default `outputs`.

    texts: the arguments of a subcommand. Raises InputError for any other key, and for a value that
    cannot be a folder.
    """
    return outputs_at(key_values(texts, ["outputs"]).get("outputs", "outputs"))
