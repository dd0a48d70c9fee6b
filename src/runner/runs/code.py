"""Which code a number comes from: a fingerprint of the modules that a study uses."""

import ast
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from runner.core.catalogue import package_of


@cache
def code_of(study: str) -> str:
    """Sixteen digits that change when the code of a study does.

    They cover `config.py` and `study.py` of the study and every module of this package, and of the
    study's own, that these import, directly or through others, without comments, docstrings and
    layout. Other packages are named in the provenance by their versions. Raises InputError when
    there is no such study.
    """
    package = package_of(study)
    return fingerprint({f"{package}.config", f"{package}.study"})


def fingerprint(names: set[str]) -> str:
    """Sixteen digits that change when one of these modules does, or one that they import.

    Comments, docstrings and layout count as nothing.
    """
    digest = hashlib.sha256()
    for name in sorted(closure(names)):
        digest.update(f"{name}\n{stripped(path_of(name).read_text())}\n".encode())
    return digest.hexdigest()[:16]


def closure(names: set[str]) -> set[str]:
    """These modules, and all that they import from this package and from theirs."""
    packages = {"runner", *(name.partition(".")[0] for name in names)}
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        if name not in found and name.partition(".")[0] in packages and path_of(name).exists():
            found.add(name)
            waiting |= _imports(name)
    return found


def path_of(name: str) -> Path:
    """The file of a module, whether there is one or not."""
    package, *rest = name.split(".")
    place = _folder(package).joinpath(*rest)
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def _folder(package: str) -> Path:
    """Where a package is. Raises ModuleNotFoundError when there is none."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"there is no package {package}")
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def _imports(name: str) -> frozenset[str]:
    """What a module imports, wherever in its text; some are names in modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path_of(name).read_text())):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, name)
            found.update([module, *(f"{module}.{each.name}" for each in node.names)])
    return frozenset(found)


def _absolute(node: ast.ImportFrom, name: str) -> str:
    """The module that `from ... import` names in a module, relative ones made absolute."""
    if not node.level:
        return node.module or ""
    above = name.split(".")
    if path_of(name).name != "__init__.py":
        above = above[:-1]
    above = above[: len(above) - node.level + 1]
    return ".".join([*above, *filter(None, [node.module])])


@cache
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
