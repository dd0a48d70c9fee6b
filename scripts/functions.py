"""Write lists of functions into the pages about Python: a line for each, from its docstring.

The pages name modules and classes for mkdocstrings, which shows their docstrings on the site. In
the repository nothing runs mkdocstrings, so the pages also have these lists. The site drops them.
"""

import inspect
import os
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from runner.runs.provenance import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGES = (DOCS / "api.md", *sorted((DOCS / "functions").glob("*.md")))
NAMED = re.compile(r"^::: (\S+)$(?:\n {4}options:.*(?:\n {6}.*)*)?", re.MULTILINE)
"""A module or class that mkdocstrings shows, with its options."""


def lists(page: Path) -> dict[str, str]:
    """Return the list of functions for each module or class that a page names, by its name."""
    found = NAMED.finditer(page.read_text())
    return {match[1]: _list(page, match[1], _members(match[0])) for match in found}


def _members(options: str) -> list[str]:
    """Return the members of a class that the options choose; empty: all."""
    chosen = re.search(r"members: \[(.*?)\]", options)
    return chosen[1].split(", ") if chosen else []


def _list(page: Path, name: str, members: list[str]) -> str:
    """Return the list about a module, or about a class and its methods, in Markdown."""
    owner, lines = _named(name), []
    if not isinstance(owner, ModuleType):
        lines.append(f"- `{owner.__name__}`: {_summary(owner)}")
    for member in members or vars(owner):
        what = getattr(owner, member)
        if (members or _is_own(owner, member, what)) and what.__doc__:
            lines.append(f"- `{member}{_arguments(what)}`: {_summary(what)}")
    source = os.path.relpath(str(inspect.getsourcefile(owner)), page.parent)
    return "\n".join([f"In [`{name}`]({source}):", "", *lines])


def _named(name: str) -> Any:
    """Return the module or the class of this name."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        module, _, member = name.rpartition(".")
        return getattr(import_module(module), member)


def _is_own(owner: Any, name: str, what: Any) -> bool:
    """Return whether a module or class defines a public function, class or property itself."""
    if name.startswith("_") or name.endswith("_bytes"):
        return False
    if isinstance(owner, ModuleType):
        is_kind = inspect.isfunction(what) or inspect.isclass(what)
        return is_kind and what.__module__ == owner.__name__
    return inspect.isfunction(what) or isinstance(what, property)


def _arguments(what: Any) -> str:
    """Return the names of a function's arguments in brackets; empty for a property."""
    if not callable(what):
        return ""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    arguments = inspect.signature(what).parameters.items()
    names = [f"{stars.get(each.kind, '')}{name}" for name, each in arguments if name != "self"]
    return f"({', '.join(names)})"


def _summary(what: Any) -> str:
    """Return the first paragraph of a docstring in Markdown."""
    text = " ".join(str(inspect.getdoc(what)).partition("\n\n")[0].split())
    parts = text.split("`")  # every second part is code
    parts[::2] = [re.sub(r"([*_|<])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)
