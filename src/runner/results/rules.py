"""Rules as they are kept: printed, and with a digest by which a later change shows.

The rule of a claim is what decides: its quantities with their arguments, its comparisons with their
bounds, the sizes it needs, and the code that measures. Words are not: name, statement, source,
note, docstrings, layout.
"""

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from functools import cache
from importlib.util import resolve_name
from typing import Any

from runner.results.quantities import Quantity, Rule
from runner.runs.provenance import source_of

JUDGE = 1
"""Of `results.evidence`, which decides all claims: raised when that decides otherwise. So its code
can be tidied, and no digest moves."""

WORDS = {"__str__", "_in_words", "_place", "number"}
"""Names of what writes words, which decide nothing."""


def digest(rules: Sequence[Rule], needs: Mapping[str, int]) -> str:
    """Sixteen digits that change when what is measured or decided does."""
    parts = [
        [_measured(each.quantity), type(each.comparison).__name__, asdict(each.comparison)]
        for each in rules
    ]
    return _digest([JUDGE, parts, dict(needs)])[:16]


def _measured(quantity: Quantity) -> list[Any]:
    function = quantity.function
    data = [quantity.arguments, quantity.each, quantity.unit, quantity.numbers, quantity.assumed]
    return [code_of(function.__module__, function.__qualname__), *data]


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


@cache
def code_of(module: str, name: str) -> str:
    """Return the digest of a function, and of all that it uses of `results`, of a paper, or its
    package.

    The provenance records what else is used, as pandas.
    """
    packages: tuple[str, ...] = ("runner.results.", "runner.papers.")
    if not module.startswith("runner."):
        packages += (f"{module.partition('.')[0]}.",)
    found: dict[str, list] = {}
    waiting = [(module, name)]
    while waiting:
        module, name = waiting.pop()
        place = f"{module}.{name}"
        if place in found or not f"{module}.".startswith(packages) or name in WORDS:
            continue
        defined, imported = _statements(module, source_of(module) or "")
        found[place] = [_shape(node) for node in defined.get(name, [])]
        for node in defined.get(name, []):
            waiting += _used(node, module, imported)
    return _digest(sorted((place, shapes) for place, shapes in found.items() if shapes))


Imported = Mapping[str, tuple[str, str]]
"""Where names of a module are from: module and name there."""


def _used(node: ast.AST, module: str, imported: Imported) -> Iterator[tuple[str, str]]:
    """Yield the names that a statement uses, with their modules; of an imported module its
    attributes."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield imported.get(each.id, (module, each.id))
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            yield ".".join(imported.get(each.value.id, ())), each.attr


@cache
def _statements(module: str, text: str) -> tuple[dict[str, list[ast.stmt]], Imported]:
    """Return the statements of a module by the names that they define, and its imports, late ones
    too.

    Methods are named `Class.method`.
    """
    tree = ast.parse(text)
    package = module.rpartition(".")[0]
    imported = {
        each.asname or each.name: (
            resolve_name("." * node.level + (node.module or ""), package),
            each.name,
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    defined: dict[str, list[ast.stmt]] = {}
    for node in map(_bare, tree.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        else:
            found = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
            names = [each.id for each in found if isinstance(each.ctx, ast.Store)]
        for each in names:
            defined.setdefault(each, []).append(node)
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            defined |= {f"{node.name}.{each.name}": [each] for each in methods}
    return defined, imported


def _bare(statement: ast.stmt) -> ast.stmt:
    """Return a statement without docstrings, annotations, decorators, and methods that write
    words."""
    statement = deepcopy(statement)
    for node in ast.walk(statement):
        for name in ("annotation", "returns", "decorator_list"):
            if hasattr(node, name):
                setattr(node, name, [] if name == "decorator_list" else None)
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [each for each in body if not _is_words(each)]
    return statement


def _is_words(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in WORDS
    value = getattr(node, "value", None) if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


NOT_IN_EVERY_PYTHON = {"kind", "type_comment", "type_params", "ctx"}
"""Fields of a syntax tree."""


def _shape(node: Any) -> Any:
    """Return a syntax tree as plain data that is the same in every version of Python."""
    if isinstance(node, list):
        return list(map(_shape, node))
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [pair for pair in ast.iter_fields(node) if pair[0] not in NOT_IN_EVERY_PYTHON]
    parts = [[name, _shape(value)] for name, value in fields if value not in (None, [])]
    return [type(node).__name__, *parts]
