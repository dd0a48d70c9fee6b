"""Files that a user's own methods read: their content counts as code of the module.

The module says `np.load(runner.own_file("directions.npy"))`. Fingerprints find these words in the
text of the module, since a command that only lists runs does not import it.
"""

import ast
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.core.errors import InputError
from runner.runs.files import read

NAME = "own_file"
"""The name of the function of `runner.api`."""

_digests: dict[Path, str] = {}
"""The SHA-256 of each file when it was last handed out or, before that, looked at."""


def names_in(text: str) -> list[str]:
    """Return the names of the files that a module reads by `own_file("...")`, in its order.

    text: the source of the module. Raises SyntaxError if it is no Python.
    """
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == NAME:
            values = [word.value for word in node.args if isinstance(word, ast.Constant)]
            names += [value for value in values if isinstance(value, str)]
    return names


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, as it was when it was handed out; empty if there is none."""
    if path not in _digests:
        try:
            return _digests.setdefault(path, hashlib.sha256(read(path)).hexdigest())
        except OSError:
            return ""
    return _digests[path]


def handed_out(name: str, module: Mapping[str, Any]) -> tuple[Path, bool]:
    """Return the path of a file next to a module, and whether its content is another than before.

    name: the name of the file, or its path from the folder of the module. module: the global names
    of the module. Raises InputError if there is no such file, or the module is no file, or does not
    have the name as a text.
    """
    file = module.get("__file__")
    if not file:
        raise InputError(f'{NAME}("{name}") works in a file that Python can import, not here')
    if name not in names_in(read(Path(file)).decode("utf-8", "replace")):
        raise InputError(f'{file}: write the name of the file itself, {NAME}("{name}")')
    path = Path(file).parent / name
    before = digest_of(path)
    _digests.pop(path, None)
    if not (now := digest_of(path)):
        raise InputError(f"{file}: {NAME} finds no file {path}")
    return path, now != before
