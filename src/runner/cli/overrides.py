"""Words as Hydra is to understand them: values of Python, and texts that are taken as typed."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from runner.core.errors import InputError
from runner.core.functions import place_of


def overrides_of(keys: Mapping[str, Any], choices: bool = False) -> list[str]:
    """Return `key=value` for each key. choices: a list means several runs.

    Raises InputError for a value that cannot be typed.
    """
    return [f"{key}={choices_of(value) if choices else text(value)}" for key, value in keys.items()]


def choices_of(value: Any) -> str:
    """Return values as they are typed in a sweep. Raises InputError as `overrides_of` does."""
    value = value.tolist() if hasattr(value, "tolist") else value  # of numpy and torch
    values = value if isinstance(value, list | tuple | range) else [value]
    if not values:
        raise InputError("an empty list of values gives no runs: give at least one value")
    return ",".join(map(text, values))


def text(value: Any) -> str:
    """Return a value of Python as one would type it; a text means itself, whatever is in it."""
    value = value.tolist() if hasattr(value, "tolist") else value  # of numpy and torch
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str | Path):
        # A value without quotes may choose a file.
        plain = (
            re.fullmatch(r"[A-Za-z_][\w./-]*", str(value)) and str(value).lower() not in NO_TEXTS
        )
        return str(value) if plain else quoted(re.sub(r"(\\*)\$\{", r"\1\1\\${", str(value)))
    if isinstance(value, list | tuple | range):
        return f"[{','.join(map(text, value))}]"
    if callable(value):
        return quoted(place_of(value))
    raise InputError(f"{value!r} is no value of a parameter: {type(value).__name__}")


NO_TEXTS = {"null", "true", "false", "nan", "inf"}
"""Words that are values of other types if they have no quotes."""


AS_IT_IS = re.compile(r"""null|'.*'|".*"|\s*""", re.DOTALL)
"""What needs no quotes."""

SEPARATOR = re.compile(r""",(?=(?:[^'"]|'[^']*'|"[^"]*")*$)""")
"""A comma outside quotes."""


def quoted(value: str) -> str:
    """Return a text in Hydra's quotes; there a backslash is special only before a quote."""
    return "'" + re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + m[2].replace("'", "\\'"), value) + "'"


def as_typed(word: str, texts: Collection[str], paths: Collection[str]) -> str:
    """Return `key=value` so that Hydra takes its value for the text that it is.

    texts: the keys whose values are texts; paths: the keys that have one value. A value that has
    quotes already, or is null, stays unchanged; so does a function of Hydra's for a text.
    """
    key, equals, value = word.partition("=")
    if not equals or AS_IT_IS.fullmatch(value):
        return word
    if key in paths:
        return f"{key}={quoted(value)}"
    if key in texts and not re.fullmatch(r"\w+\(.*\)", value):
        each = SEPARATOR.split(value)
        return f"{key}={','.join(one if AS_IT_IS.fullmatch(one) else quoted(one) for one in each)}"
    return word
