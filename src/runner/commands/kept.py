"""Read the files of the reference, and of drawn figures; one that is damaged is named."""

import json
import lzma
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from runner.core.errors import InputError


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Return a table or the claims of a figure; options: as of pandas.

    Raises InputError where the file is damaged: each line that was written has an end.
    """
    try:
        content = path.read_bytes()
        content = lzma.decompress(content) if path.suffix == ".xz" else content
        if not content.endswith(b"\n"):
            raise ValueError("it has no end")
        return pd.read_csv(BytesIO(content), **options)
    except (lzma.LZMAError, EOFError, ValueError) as error:
        raise _damaged(path, error) from error


def read_json(path: Path) -> dict[str, Any]:
    """Return a provenance, or what else is kept as JSON. Raises InputError where it is damaged."""
    try:
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict):
            raise ValueError("it is no mapping")
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from error
    return found


def _damaged(path: Path, error: Exception) -> InputError:
    why = " ".join(str(error).split())
    return InputError(f"{path} is damaged ({why}): restore it, or make it again")
