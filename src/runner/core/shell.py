"""The commands that the program prints: complete, and written as a person would type them."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from runner.core.catalogue import given_folders

PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
"""Pattern of the words that need no quotes in a shell."""

ACTIVE = set('"$`\\!')
"""The signs that a shell replaces, or ends the text with, between double quotes."""


def command(*words: str, outputs: Path | str = "outputs") -> str:
    """Return a command of the program as text, which a user can paste into a shell.

    The folders of `--config-dir` of the present command are added: without them the command may not
    know a study or a registered name.

    words: the arguments. outputs: the folder of outputs, which is added unless it is the default.
    """
    folders = [word for path in given_folders() for word in ("--config-dir", near(path))]
    elsewhere = [] if near(outputs) == "outputs" else [f"outputs={near(outputs)}"]
    return typed(["runner", *folders, *words, *elsewhere])


def typed(words: Iterable[str]) -> str:
    """Return arguments as a user types them in a shell, with quotes only where they are needed."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if PLAIN.fullmatch(word):
        return word
    if "'" in word and not ACTIVE & set(word):
        return f'"{word}"'
    return shlex.quote(word)


def near(path: Path | str) -> str:
    """Return a path relative to the present folder if it is inside this folder."""
    path, here = Path(path), Path.cwd()
    inside = path.is_absolute() and path.is_relative_to(here)
    return str(path.relative_to(here) if inside else path)
