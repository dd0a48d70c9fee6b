"""Whether the rule of a claim stood before the numbers that it judges: from provenance and git.

The rule of a claim is its judge, with all that it is built from, and the presets that say how much
is measured. A verdict is *fixed before* when the commit that last changed the rule is in the
history of every run it judges, and those runs came from unchanged files; *after* when it is not.
Runs that are made again tell nothing new: a rule that stood before them, but not before the first
runs of their names that the reference kept, is *before a repeat*.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import yaml

from runner.core.rooms import package_of
from runner.results.claims import Claim, claims_of
from runner.results.rules import Rule, built_from, rule_of
from runner.runs.code import path_of
from runner.runs.provenance import REFERENCE, REPOSITORY, git

Standing = Literal["fixed before", "before a repeat", "after", "unknown"]

NOT_COMMITTED = "not committed"
KEPT = REFERENCE.relative_to(REPOSITORY).as_posix()
COLUMNS = ("claim", "scale", "rule", "rule_commit", "run_commits")
"""Beside each verdict: what came first, its rule or its numbers."""


def history(study: str, figure: str, scale: str, runs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each claim of a figure: COLUMNS.

    runs: the provenance of each run, with its name `run`, `commit` and `dirty`.
    """
    runs = list(runs)
    kept = first_kept(figure, scale)
    first = [kept.get(run["run"], run) for run in runs]
    commits = sorted({f"{run['commit'] or 'unknown'}{'+' * bool(run['dirty'])}" for run in runs})
    rows = []
    for claim in claims_of(figure, study):
        commit = rule_commit(study, figure, scale, claim)
        order = standing(commit, runs, first)
        rows.append((claim.name, scale, order, commit or "unknown", " ".join(commits)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def in_words(order: pd.DataFrame) -> str:
    """How many rules stood before the numbers, and how many did not, in a few words."""
    return ", ".join(f"{count} {word}" for word, count in order["rule"].value_counts().items())


def standing(
    rule: str | None, runs: Iterable[Mapping[str, Any]], first: Iterable[Mapping[str, Any]] = ()
) -> Standing:
    """Whether a rule of this commit stood before runs of this provenance.

    rule: as `rule_commit` gives it. runs: each with `commit` and `dirty`. first: the provenance of
    the first runs of their names, where these runs repeat others.
    """
    runs = list(runs)
    if rule is None or any(run["commit"] is None for run in runs):
        return "unknown"
    if not _is_before(rule, runs):
        return "after"
    return "fixed before" if _is_before(rule, first) else "before a repeat"


def _is_before(rule: str, runs: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a rule is in the history of every run, each from unchanged files."""
    if rule == NOT_COMMITTED:
        return False
    commits = {"" if run["dirty"] else run["commit"] for run in runs}
    return all(each and _is_ancestor(rule, each) for each in commits)


@cache
def first_kept(figure: str, scale: str) -> dict[str, dict[str, Any]]:
    """The provenance of each run of a figure as the reference first kept one of its name."""
    path = f"{KEPT}/{scale}/{figure}/provenance.json"
    found: dict[str, dict[str, Any]] = {}
    for commit in reversed((git("log", "--format=%H", "--", path) or "").split()):
        if (text := git("show", f"{commit}:{path}")) is not None:  # None where it was removed
            for run in json.loads(text)["runs"]:
                found.setdefault(run["run"], run)
    return found


def rule_commit(study: str, figure: str, scale: str, claim: Claim) -> str | None:
    """The commit that last changed the rule of a figure's claim, comments aside.

    NOT_COMMITTED where the files differ from the last commit, None outside a git checkout and for
    studies that are not of this repository.
    """
    package = package_of(study)
    if not package.startswith("runner."):
        return None
    presets = (f"conf/figure/{figure}.yaml", f"conf/size/{study}/{scale}.yaml")
    return last_change(rule_of(f"{package}.claims", figure, claim), presets, scale)


@cache
def last_change(rule: Rule, presets: tuple[str, ...], scale: str) -> str | None:
    """The commit that last changed a rule or the values of a preset at a scale.

    presets: their files, from the repository's root. As `rule_commit` otherwise.
    """
    if (head := git("rev-parse", "HEAD")) is None:
        return None
    modules = {module for module, _ in built_from(rule, _now)}
    files = sorted({_file(module) for module in modules} | set(presets))
    now = _digest(rule, presets, scale, _now, _text_now)
    if _digest_at(head, rule, presets, scale) != now:
        return NOT_COMMITTED
    for commit in (git("log", "--format=%H", "--", *files) or "").split():
        if _digest_at(f"{commit}^", rule, presets, scale) != now:
            return commit
    return None


def _digest(
    rule: Rule,
    presets: tuple[str, ...],
    scale: str,
    read: Callable[[str], str | None],
    text_of: Callable[[str], str | None],
) -> str:
    """Of the meaning of a rule: code without comments, presets as their values at the scale."""
    digest = hashlib.sha256()
    for module, text in sorted(built_from(rule, read)):
        digest.update(f"{module}\n{text}\n".encode())
    for path in presets:
        if (text := text_of(path)) is not None:
            digest.update(f"{path}\n{_values(text, scale)}\n".encode())
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
def _digest_at(commit: str, rule: Rule, presets: tuple[str, ...], scale: str) -> str:
    """The digest of a rule as it was at a commit."""

    def text_of(path: str) -> str | None:
        return _text_at(commit, path)

    return _digest(rule, presets, scale, lambda module: text_of(_file(module)), text_of)


@cache
def _text_at(commit: str, path: str) -> str | None:
    return git("show", f"{commit}:{path}")


def _now(module: str) -> str | None:
    return _text_now(_file(module))


@cache
def _text_now(path: str) -> str | None:
    place = REPOSITORY / path
    return place.read_text() if place.is_file() else None


@cache
def _file(module: str) -> str:
    """The file of a module of this program, from the repository's root."""
    place: Path = path_of(module)
    return str(place.relative_to(REPOSITORY))


@cache
def _is_ancestor(first: str, then: str) -> bool:
    return git("merge-base", "--is-ancestor", first, then) is not None
