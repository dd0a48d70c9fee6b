"""Which code a number comes from: a fingerprint of the modules that a study uses."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from runner.core.studies import package_of

PACKAGE = Path(__file__).resolve().parents[1]


@cache
def code_of(study: str) -> str:
    """Sixteen digits that change when the code of a study does.

    They cover `config.py` and `study.py` of the study and every module of this package that these
    import, directly or through others, without comments, docstrings and layout. Other packages are
    named in the provenance by their versions. Raises InputError when there is no such study.
    """
    package = package_of(study)
    digest = hashlib.sha256()
    for name in sorted(closure({f"{package}.config", f"{package}.study"})):
        digest.update(f"{name}\n{_stripped_module(name)}\n".encode())
    return digest.hexdigest()[:16]


def closure(names: set[str]) -> set[str]:
    """These modules of the package, and all that they import."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        if name not in found and path_of(name).exists():
            found.add(name)
            waiting |= set(_imports(name))
    return found


def path_of(name: str) -> Path:
    """The file of a module of the package."""
    place = PACKAGE.joinpath(*name.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _imports(name: str) -> Iterator[str]:
    """What a module imports from this package, wherever in its text; some are no modules."""
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.startswith("runner."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("runner"):
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse(path_of(name).read_text())


@cache
def _stripped_module(name: str) -> str:
    return stripped(path_of(name).read_text())


def stripped(text: str) -> str:
    """A module's text without comments and docstrings, laid out by the parser."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_docstring(each)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_docstring(node: ast.AST) -> bool:
    """Whether a statement is a string alone: it does nothing."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
