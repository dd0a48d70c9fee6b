"""Which code can change a number: all code, except the texts and modules listed here.

The fingerprint of code (`provenance.fingerprint`) covers all other code. A changed help text,
message or line of progress therefore makes no run stale.
"""

import ast
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from typing import Any

MODULES = {
    "runner": "has the functions of runner.api",
    "runner.api": "gives the user's methods a name, and notebooks what commands do",
    "runner.core.errors": "words the message for a wrong input",
    "runner.core.user_functions": "imports a function of the user's, whose own module counts",
    "runner.core.choices": "lists the names that a parameter accepts, and finds their functions",
    "runner.core.progress": "shows the progress of a run",
    "runner.data.files": "finds and fetches files, whose content is checked by its SHA-256",
    "runner.networks.modules": "makes torch modules of stored weights, after the run",
    "typing": "states types, which mypy reads",
}
"""Modules that do not compute numbers of a run, and what each is for. Imports of these modules do
not count."""


class _Words(ast.NodeTransformer):
    """Removes the code of a module that only people or mypy read.

    The docstring of each method is the reason.
    """

    def visit_Expr(self, node: ast.Expr) -> Any:
        """A docstring does nothing."""
        value = node.value
        is_string = isinstance(value, ast.Constant) and isinstance(value.value, str)
        return None if is_string else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        """Only mypy reads what is below `if TYPE_CHECKING`."""
        self.generic_visit(node)
        is_typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return node.orelse if is_typing else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        """A function of a module in `MODULES` computes no number."""
        return None if node.module in MODULES else node

    def visit_Raise(self, node: ast.Raise) -> Any:
        """An error ends the run. Its message is only printed."""
        return _Blank().visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        """Texts of help, reasons of a refusal, lines of log and progress are only printed."""
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name in ("parameter", "column"):
            node.args = node.args[1:]
            node.keywords = [word for word in node.keywords if word.arg not in ("help", "meaning")]
        elif name.endswith(".refuse"):
            node.args = node.args[:1]
        elif name.startswith("log.") or name.endswith(".progress") or name == "print":
            node = _Blank().visit(node)
        elif name == "bar.update":  # the names of its numbers
            node.keywords = [ast.keyword("", word.value) for word in node.keywords]
        return node


class _Blank(ast.NodeTransformer):
    """Empties every string."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Constant:
        return ast.Constant("")


@cache
def counted(text: str) -> ast.Module:
    """Return the syntax tree of a module without the code that only people or mypy read.

    text: the source of the module.
    """
    return _Words().visit(ast.parse(text))


@cache
def imports(package: str, text: str) -> frozenset[str]:
    """Return the full names of everything that a module imports, also within functions.

    package: the package of the module. text: the source of the module. `from a import b` gives both
    `a` and `a.b`, since `a.b` may be a module, a function or a class.
    """
    names: set[str] = set()
    for node in ast.walk(counted(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # `from .` outside a package: Python cannot import it
                module = resolve_name("." * node.level + (node.module or ""), package)
                names.update([module, *(f"{module}.{alias.name}" for alias in node.names)])
    return frozenset(names - MODULES.keys())


@cache
def written(text: str) -> str:
    """Return the syntax tree of `counted` as one string, which is equal in all versions of Python.

    text: the source of the module.
    """
    return _tree_text(counted(text))


def _tree_text(value: Any) -> str:
    """Return a node of a syntax tree and its parts as text.

    Empty fields are skipped, since new versions of Python add some.
    """
    if isinstance(value, list):
        parts = [_tree_text(item) for item in value]
    elif isinstance(value, ast.AST):
        fields = ast.iter_fields(value)
        parts = [f"{n}={_tree_text(v)}" for n, v in fields if v is not None and v != []]
    else:
        return repr(value)
    return f"{type(value).__name__}({', '.join(parts)})"
