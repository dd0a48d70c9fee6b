"""The rule of a claim: all statements of the program that its judge is built from.

From the judge on, with what it is decorated with for the figure, and from the rule that makes a
verdict of evidence, each statement of the judge's room and of `results` whose name is used. What
else stands in a file does not belong to the rule. Imports are absolute in this repository.
"""

import ast
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from runner.results.claims import Claim, judgement
from runner.runs.code import stripped

RESULTS = "runner.results"


@dataclass(frozen=True)
class Rule:
    """Where the rule of a claim begins. claims: the module `claims.py` that makes the claim.

    judge: the module and the name of a function; figure: the claim's; listed: figure and name of
    the claim, where the module lists its claims.
    """

    claims: str
    judge: tuple[str, str]
    figure: str
    listed: str = ""


@dataclass(frozen=True)
class Statement:
    """A statement of a module, without its comments, and the names that it uses."""

    text: str
    used: frozenset[str]


@dataclass(frozen=True)
class Statements:
    """A module: its statements by the names that they define, the others, and where imported names
    are from: module and name there."""

    defining: dict[str, list[Statement]]
    others: list[Statement]
    imported: dict[str, tuple[str, str]]


def rule_of(claims: str, figure: str, claim: Claim) -> Rule:
    """The rule of a claim that the module `claims` makes for a figure."""
    judge = getattr(claim.judge, "func", claim.judge)
    listed = f"{figure}/{claim.name}" if hasattr(import_module(claims), "CLAIMS") else ""
    return Rule(claims, (judge.__module__, judge.__name__), figure, listed)


def built_from(rule: Rule, read: Callable[[str], str | None]) -> frozenset[tuple[str, str]]:
    """The statements that a rule is built from, each with its module.

    read: the text of a module, None where there is none.
    """
    rooms = (rule.claims.rsplit(".", 2)[0] + ".", RESULTS + ".")
    found: set[tuple[str, str]] = set()
    reached: set[tuple[str, str]] = set()
    waiting = [rule.judge, (judgement.__module__, judgement.__name__)]
    if rule.listed:
        waiting.append((rule.claims, rule.listed))
    elif rule.judge[0] != rule.claims and (text := read(rule.claims)) is not None:
        # The judge is another module's: what registers it is what uses a name of that module.
        own = statements(text, rule.figure)
        given = {name for name, (module, _) in own.imported.items() if module == rule.judge[0]}
        registering = [each for each in own.others if each.used & given]
        found |= {(rule.claims, each.text) for each in registering}
        waiting += [(rule.claims, name) for each in registering for name in each.used]
    while waiting:
        place = waiting.pop()
        if place in reached or not place[0].startswith(rooms):
            continue
        reached.add(place)
        module, name = place
        if (text := read(module)) is None:
            continue
        own = statements(text, rule.figure)
        for each in own.defining.get(name, []):
            found.add((module, each.text))
            waiting += [(module, used) for used in each.used]
        if name in own.imported:
            source, original = own.imported[name]
            waiting.append((source, original))
            inner = f"{source}.{original}"
            if (
                inner.startswith(rooms) and (whole := read(inner)) is not None
            ):  # a module: all of it
                waiting += [(inner, each) for each in statements(whole, rule.figure).defining]
    return frozenset(found)


@cache
def statements(text: str, figure: str) -> Statements:
    """The statements of a module's text; of decorators for a figure, those for this one."""
    found = Statements(defaultdict(list), [], {})
    tree = ast.parse(stripped(text))
    for node in ast.walk(tree):  # also the late ones, in functions
        if isinstance(node, ast.ImportFrom):
            for each in node.names:
                found.imported[each.asname or each.name] = (node.module or "", each.name)
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [each for each in node.decorator_list if _is_of(each, figure)]
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        defined = [each.id for each in names if isinstance(each.ctx, ast.Store)]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined = [node.name]
        if "CLAIMS" in defined:
            for name, each in _listed(node.value).items():
                found.defining[name].append(_statement(each))
            continue
        one = _statement(node)
        for name in defined:
            found.defining[name].append(one)
        if not defined:
            found.others.append(one)
    return found


def _statement(node: ast.AST) -> Statement:
    names = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
    return Statement(ast.unparse(node), frozenset(names))


def _listed(claims: ast.Dict) -> dict[str, ast.Call]:
    """The claims in the dictionary `CLAIMS`, by figure and name."""
    return {
        f"{ast.literal_eval(figure)}/{ast.literal_eval(each.args[0])}": each
        for figure, listed in zip(claims.keys, claims.values, strict=True)
        for each in listed.elts
    }


def _is_of(decorator: ast.expr, figure: str) -> bool:
    """Whether a decorator is for a figure: it names that, or none."""
    named = {k.arg: k.value for k in decorator.keywords} if isinstance(decorator, ast.Call) else {}
    return not isinstance(value := named.get("figure"), ast.Constant) or value.value == figure
