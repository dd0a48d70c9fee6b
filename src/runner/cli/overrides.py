"""Values of Python as the overrides that one would type."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.core.errors import InputError


def as_overrides(keys: Mapping[str, Any], choices: bool = False) -> list[str]:
    """`key=value` for each. choices: a list stands for several runs, each with one of its values.

    Raises InputError for a value that cannot be typed.
    """
    return [f"{key}={_choices(value) if choices else _text(value)}" for key, value in keys.items()]


def _choices(value: Any) -> str:
    values = value if isinstance(value, list | tuple | range) else [value]
    if not values:
        raise InputError("an empty list of values makes no runs")
    return ",".join(map(_text, values))


def _text(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value  # of numpy and torch
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str | Path):
        # What stands without quotes may choose a file; a number in quotes stays a text.
        plain = re.fullmatch(r"[A-Za-z_][\w./-]*", str(value))
        return str(value) if plain else json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, list | tuple | range):
        return f"[{','.join(map(_text, value))}]"
    raise InputError(f"{value!r} is no value of a parameter: {type(value).__name__}")
