"""Pre-registration: record the rules of a figure before its runs are computed.

The digests of a figure's rules are written into a file next to the figure before its first run
starts. A verdict is *pre-registered* under two conditions. The digest of its rule was written by
then. And the reference had no numbers of the same seed for this figure under another rule, at any
scale. Otherwise the verdict is *exploratory*.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from runner.results.verdicts import STANDINGS
from runner.runs.files import read, write_atomically
from runner.runs.run import Run

PREREGISTERED, EXPLORATORY = STANDINGS


def register(
    path: Path, rules: Mapping[str, str], runs: Iterable[Run], before: Mapping[str, str]
) -> None:
    """Write the digests of a figure's rules into a file, before its runs are computed.

    If a run exists already, only rules that were registered before and are unchanged are written.
    rules: the digest of each rule, by the claim's name. before: the rules that were registered
    before.
    """
    runs = list(runs)
    if any(run.folder.exists() for run in runs):
        rules = {name: digest for name, digest in rules.items() if before.get(name) == digest}
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"rules": rules, "runs": _names(runs)}
    write_atomically(path, json.dumps(content, indent=1).encode())


def registered(path: Path, runs: Iterable[Run]) -> dict[str, str]:
    """Return the digest of each rule that a file registers for these runs, by the claim's name."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(read(path))
        if content["runs"] == _names(runs):
            return content["rules"]
    return {}


def _names(runs: Iterable[Run]) -> list[str]:
    return sorted(run.key for run in runs)


def rules_before_numbers(
    judged: pd.DataFrame,
    provenance: Mapping[str, Any],
    stored: Iterable[tuple[Mapping[str, Any], pd.DataFrame]],
) -> list[bool]:
    """Return for each judged claim whether its rule was written before its numbers were known.

    judged: the claims of a figure. provenance: the provenance of the figure. stored: for each scale
    at which the reference has the figure, its provenance and its claims.
    """
    seeds, rules = set(provenance["seeds"]), dict(provenance["rules"])
    for earlier, claims in stored:
        if seeds & set(earlier.get("earlier_seeds", [])):
            rules = {}  # the rules of the earlier numbers are lost
        if seeds & set(earlier["seeds"]):
            claims = claims[claims["standing"] == PREREGISTERED]
            same = set(zip(claims["claim"], claims["digest"], strict=True))
            rules = {claim: digest for claim, digest in rules.items() if (claim, digest) in same}
    return [rules.get(row.claim) == row.digest for row in judged.itertuples()]


def earlier_seeds(provenance: Mapping[str, Any], replaced: Mapping[str, Any]) -> list[int]:
    """Return the seeds of the figure's earlier results in the reference, except its present seeds.

    provenance: the new provenance. replaced: the provenance that it replaces in the reference;
    empty if there is none.
    """
    seeds = {*replaced.get("earlier_seeds", []), *replaced.get("seeds", [])}
    return sorted(seeds - set(provenance["seeds"]))


def with_standing(judged: pd.DataFrame, scale: str, preregistered: Iterable[bool]) -> pd.DataFrame:
    """Return judged claims with the columns `scale` and `standing`, as the reference stores them.

    preregistered: whether each claim is *pre-registered*; otherwise its standing is *exploratory*.
    """
    standing = np.where([*preregistered], PREREGISTERED, EXPLORATORY)
    return judged.assign(scale=scale, standing=standing)
