"""Whether the rule of a claim stood before the numbers that it judges: from provenance and git.

The rule of a claim is its judge, with all that it is built from, and the presets that say how much
is measured. A verdict is *fixed before* when the commit that last changed the rule is in the
history of every run it judges, and those runs came from unchanged files; *after* when it is not.
"""

import ast
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import pandas as pd
import yaml

from runner.core.rooms import package_of
from runner.results.claims import Claim, claims_of
from runner.runs.code import closure, path_of, stripped
from runner.runs.provenance import REPOSITORY, git

Standing = Literal["fixed before", "after", "unknown"]

NOT_COMMITTED = "not committed"
COLUMNS = ("claim", "scale", "rule", "rule_commit", "run_commits")
"""Beside each verdict: what came first, its rule or its numbers."""


@dataclass(frozen=True)
class Rule:
    """Where the rule of a claim is, in files named from the repository's root.

    claims: the file `claims.py` of the study; of it, what the judge is built from. judge: the
    module that it comes from, its name, and the figure. files: what else belongs to the rule,
    whole; of a preset the values at this scale.
    """

    claims: str
    judge: tuple[str, str, str]
    files: tuple[str, ...]
    scale: str


def history(study: str, figure: str, scale: str, runs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each claim of a figure: COLUMNS.

    runs: the provenance of each run, with `commit` and `dirty`.
    """
    runs = list(runs)
    commits = sorted({f"{run['commit'] or 'unknown'}{'+' * bool(run['dirty'])}" for run in runs})
    rows = []
    for claim in claims_of(figure, study):
        commit = rule_commit(rule_of(study, figure, scale, claim))
        order = standing(commit, runs)
        rows.append((claim.name, scale, order, commit or "unknown", " ".join(commits)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def standing(rule: str | None, runs: Iterable[Mapping[str, Any]]) -> Standing:
    """Whether a rule of this commit stood before runs of this provenance.

    rule: as `rule_commit` gives it. runs: each with `commit` and `dirty`.
    """
    runs = list(runs)
    if rule is None or any(run["commit"] is None for run in runs):
        return "unknown"
    if rule == NOT_COMMITTED or any(run["dirty"] for run in runs):
        return "after"
    commits = {run["commit"] for run in runs}
    return "fixed before" if all(_is_ancestor(rule, each) for each in commits) else "after"


@cache
def rule_commit(rule: Rule | None) -> str | None:
    """The commit that last changed the rule of a claim, comments aside.

    NOT_COMMITTED where the files differ from the last commit, None outside a git checkout and for
    claims that are not of this repository.
    """
    if rule is None or (head := git("rev-parse", "HEAD")) is None:
        return None
    files = (rule.claims, *rule.files)
    now = _digest({path: (REPOSITORY / path).read_text() for path in files}, rule)
    if _digest_at(head, rule) != now:
        return NOT_COMMITTED
    for commit in (git("log", "--format=%H", "--", *files) or "").split():
        if _digest_at(f"{commit}^", rule) != now:
            return commit
    return None


def in_words(order: pd.DataFrame) -> str:
    """How many rules stood before the numbers, and how many did not, in a few words."""
    return ", ".join(f"{count} {word}" for word, count in order["rule"].value_counts().items())


def rule_of(study: str, figure: str, scale: str, claim: Claim) -> Rule | None:
    """The judge, what it imports from its room and from `results`, and the presets; None for a
    study that is not of this repository.
    """
    package = package_of(study)
    if not package.startswith("runner."):
        return None
    judge = getattr(claim.judge, "func", claim.judge)
    which, place = (judge.__module__, judge.__name__, figure), path_of(f"{package}.claims")
    _, imported = part_of_rule(place.read_text(), which)
    imported = {each for each in imported if each.startswith("runner.")}
    own = (package.rpartition(".")[0], "runner.results.")
    modules = [each for each in closure(imported) if each.startswith(own)]
    places = [path_of(each) for each in modules if path_of(each) != place]
    places += [REPOSITORY / "conf" / "figure" / f"{figure}.yaml"]
    places += [REPOSITORY / "conf" / "size" / study / f"{scale}.yaml"]
    present = [each for each in places if each.is_file() and each.is_relative_to(REPOSITORY)]
    files = sorted(str(each.relative_to(REPOSITORY)) for each in present)
    return Rule(str(place.relative_to(REPOSITORY)), which, tuple(files), scale)


@cache
def part_of_rule(text: str, judge: tuple[str, str, str]) -> tuple[str, frozenset[str]]:
    """What of the text of a `claims.py` a judge is built from, and all that this imports.

    judge: as of `Rule`. From the function on, with what it is decorated with for this figure, each
    statement whose name is used; where the judge is another module's, from the statements on that
    use what that module gives. Imports are absolute in this repository.
    """
    module, name, figure = judge
    defined: dict[str, list[ast.stmt]] = defaultdict(list)
    imported: dict[str, tuple[str, ...]] = {}
    body = ast.parse(stripped(text)).body
    for statement in body:
        if isinstance(statement, ast.ImportFrom):
            for each in statement.names:
                source = statement.module or ""
                imported[each.asname or each.name] = (source, f"{source}.{each.name}")
        elif isinstance(statement, ast.Import):
            for each in statement.names:
                imported[each.asname or each.name.partition(".")[0]] = (each.name,)
        else:
            if isinstance(statement, ast.FunctionDef) and statement.name == name:
                wanted = [each for each in statement.decorator_list if _is_of(each, figure)]
                statement.decorator_list = wanted
            for bound in _bound(statement):
                defined[bound].append(statement)
    given = {key for key, (source, *_) in imported.items() if source == module}
    waiting = defined[name] or [
        each for each in body if isinstance(each, ast.Expr) and _used(each) & given
    ]
    reached: list[ast.stmt] = []
    used: set[str] = set()
    while waiting:
        statement, *waiting = waiting
        if statement not in reached:
            reached.append(statement)
            used |= _used(statement)
            waiting += [each for key in _used(statement) for each in defined[key]]
    kept = "\n".join(ast.unparse(each) for each in body if each in reached)
    return kept, frozenset(each for key in used & set(imported) for each in imported[key])


def _is_of(decorator: ast.expr, figure: str) -> bool:
    """Whether a decorator is for a figure: it names that, or none."""
    named = {k.arg: k.value for k in decorator.keywords} if isinstance(decorator, ast.Call) else {}
    return not isinstance(value := named.get("figure"), ast.Constant) or value.value == figure


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement of a module gives a meaning to."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    stored = (each for each in ast.walk(statement) if isinstance(each, ast.Name))
    return [each.id for each in stored if isinstance(each.ctx, ast.Store)]


def _used(statement: ast.stmt) -> set[str]:
    """The names that a statement reads."""
    return {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}


def _digest(texts: Mapping[str, str], rule: Rule) -> str:
    """Of the meaning of files: code without comments, presets as their values at the scale."""
    digest = hashlib.sha256()
    for path, text in sorted(texts.items()):
        if path == rule.claims:
            meaning, _ = part_of_rule(text, rule.judge)
        else:
            meaning = stripped(text) if path.endswith(".py") else _values(text, rule.scale)
        digest.update(f"{path}\n{meaning}\n".encode())
    return digest.hexdigest()


@cache
def _values(text: str, scale: str) -> str:
    """The values of a preset; of a figure's grids, that of the scale alone."""
    content = yaml.safe_load(text) or {}  # a preset may be comments alone
    if sweeper := content.get("hydra", {}).get("sweeper"):
        grids = sweeper["grids"]
        grid = grids.get(scale)
        if isinstance(grid, str):  # ${.paper}: as at another scale
            grid = grids.get(grid.strip("${.}"))
        sweeper["grids"] = grid
    return json.dumps(content)


@cache
def _digest_at(commit: str, rule: Rule) -> str:
    """The digest of a rule as it was at a commit; files that this lacks are left out."""
    texts = {path: _text_at(commit, path) for path in (rule.claims, *rule.files)}
    return _digest({path: text for path, text in texts.items() if text is not None}, rule)


@cache
def _text_at(commit: str, path: str) -> str | None:
    return git("show", f"{commit}:{path}")


@cache
def _is_ancestor(first: str, then: str) -> bool:
    return git("merge-base", "--is-ancestor", first, then) is not None
