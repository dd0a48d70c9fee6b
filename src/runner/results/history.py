"""Whether a rule stood before the numbers that it judges: from the provenance and from git.

The rule of a claim is its judge, with all that it is built from, and the presets that say how much
is measured. A verdict is *fixed before* when the commit that last changed the rule is in the
history of every run it judges, and those runs came from unchanged files; *after* when it is not.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal

import yaml

from runner.core.rooms import package_of
from runner.runs.code import closure, path_of, stripped
from runner.runs.provenance import REPOSITORY, git

Standing = Literal["fixed before", "after", "unknown"]

NOT_COMMITTED = "not committed"


def history(
    study: str, figure: str, scale: str, runs: Iterable[Mapping[str, Any]]
) -> dict[str, str]:
    """The columns that say, beside each verdict of a figure, what came first: rule or numbers.

    runs: the provenance of each run, with `commit` and `dirty`.
    """
    runs = list(runs)
    rule = rule_commit(study, figure, scale)
    commits = sorted({f"{run['commit'] or 'unknown'}{'+' * bool(run['dirty'])}" for run in runs})
    return {
        "scale": scale,
        "rule": standing(rule, runs),
        "rule_commit": rule or "unknown",
        "run_commits": " ".join(commits),
    }


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
def rule_commit(study: str, figure: str, scale: str) -> str | None:
    """The commit that last changed the rule behind a figure's claims, comments aside.

    NOT_COMMITTED where the files differ from the last commit, None outside a git checkout and for
    studies that are not of this repository.
    """
    if not (files := rule_files(study, figure, scale)):
        return None
    now = _digest({path: (REPOSITORY / path).read_text() for path in files}, scale)
    if (head := git("rev-parse", "HEAD")) is None:
        return None
    if _digest_at(head, files, scale) != now:
        return NOT_COMMITTED
    for commit in (git("log", "--format=%H", "--", *files) or "").split():
        if _digest_at(f"{commit}^", files, scale) != now:
            return commit
    return None


def rule_files(study: str, figure: str, scale: str) -> tuple[str, ...]:
    """The files that hold the rule, relative to the repository.

    Judges, what they import from their room and from `results`, and the presets; none for a study
    that is not of this repository.
    """
    package = package_of(study)
    if not package.startswith("runner."):
        return ()
    own = (package.rpartition(".")[0], "runner.results.")
    modules = [each for each in closure({f"{package}.claims"}) if each.startswith(own)]
    places = [path_of(each) for each in modules]
    places += [REPOSITORY / "conf" / "figure" / f"{figure}.yaml"]
    places += [REPOSITORY / "conf" / "size" / study / f"{scale}.yaml"]
    present = [place for place in places if place.is_file() and place.is_relative_to(REPOSITORY)]
    return tuple(sorted(str(place.relative_to(REPOSITORY)) for place in present))


def _digest(texts: Mapping[str, str], scale: str) -> str:
    """Of the meaning of files at a scale: code without comments, presets as their values."""
    digest = hashlib.sha256()
    for path, text in sorted(texts.items()):
        meaning = stripped(text) if path.endswith(".py") else _values(text, scale)
        digest.update(f"{path}\n{meaning}\n".encode())
    return digest.hexdigest()


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
def _digest_at(commit: str, files: tuple[str, ...], scale: str) -> str:
    """The digest of files as they were at a commit; those that it lacks are left out."""
    texts = {path: git("show", f"{commit}:{path}") for path in files}
    return _digest({path: text for path, text in texts.items() if text is not None}, scale)


@cache
def _is_ancestor(first: str, then: str) -> bool:
    return git("merge-base", "--is-ancestor", first, then) is not None
