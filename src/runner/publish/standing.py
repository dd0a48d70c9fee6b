"""Whether a kept verdict is pre-registered: its rule stood before the numbers that it judges.

It does where its digest was written down before the runs were begun (`results.registering`), and
nothing of the same seed had been kept of the figure by then, at whatever scale, under another rule.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from runner.publish.kept import read_csv, read_json
from runner.results.verdicts import STANDINGS

PREREGISTERED, EXPLORATORY = STANDINGS


def as_kept(judged: pd.DataFrame, scale: str, stood: Iterable[bool]) -> pd.DataFrame:
    """Claims as `claims.csv` of the reference has them.

    stood: whether the rule of each was there before its numbers.
    """
    return judged.assign(scale=scale, standing=np.where([*stood], PREREGISTERED, EXPLORATORY))


def stood_before(
    judged: pd.DataFrame, about: Mapping[str, Any], before: Iterable[Path]
) -> list[bool]:
    """Return whether the rule of each claim stood before the numbers.

    about: the provenance of the figure; before: its folders in the reference, at all scales.
    """
    seeds, known = set(about["seeds"]), dict(about["rules"])
    for folder in before:
        then = read_json(folder / "provenance.json")
        if seeds & set(then.get("earlier_seeds", [])):
            known = {}  # of that time nothing is left to compare with
        if seeds & set(then["seeds"]):
            kept = read_csv(folder / "claims.csv").query("standing == @PREREGISTERED")
            same = set(zip(kept["claim"], kept["digest"], strict=True))
            known = {claim: digest for claim, digest in known.items() if (claim, digest) in same}
    return [known.get(row.claim) == row.digest for row in judged.itertuples()]


def earlier_seeds(about: Mapping[str, Any], folder: Path) -> list[int]:
    """Return the seeds that a figure had in the reference, and has no more.

    folder: of the figure there, as it is about to be replaced.
    """
    if not (folder / "provenance.json").exists():
        return []
    then = read_json(folder / "provenance.json")
    return sorted({*then.get("earlier_seeds", []), *then["seeds"]} - set(about["seeds"]))
