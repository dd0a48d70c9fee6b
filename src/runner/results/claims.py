"""What a claim is: one statement of a paper, judged by the program over tables.

A claim *holds*, *fails* or is *undecided*, always with the measured number beside it. The
thresholds come from the statement and from the spread of the replicates. In the `claims.py` of a
study each statement stands above its judge:

    @claim(figure="fig4", name="exact", statement="...", source="paper A, Theorem 1")
    def exact(tables: Tables) -> Judgement: ...
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from runner.core.studies import part_of

Tables = Mapping[str, pd.DataFrame]
"""The tables of a figure's runs by name: `tables["metrics"]`."""

Verdict = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Judgement:
    """A verdict with what was measured and what the statement expects, both as short texts."""

    verdict: Verdict
    measured: str
    expected: str


@dataclass(frozen=True)
class Claim:
    """A statement in our words, its source (paper, section or theorem), and how to judge it."""

    name: str
    statement: str
    source: str
    judge: Callable[[Tables], Judgement]


_claims: dict[str, list[Claim]] = {}
"""The claims of each figure, as far as the modules that make them have been imported."""


def claim(
    *, figure: str, name: str, statement: str, source: str, **arguments: Any
) -> Callable[[Callable], Callable]:
    """Make the function below the judge of a statement that a figure shows.

    The claims of a figure are judged in the order in which they are made. `arguments` are given to
    the judge beside the tables, so that one judge can serve several statements. Raises ValueError
    when the figure has a claim of that name already.
    """

    def register(judge: Callable) -> Callable:
        made = _claims.setdefault(figure, [])
        if name in (each.name for each in made):
            raise ValueError(f"figure {figure} has two claims named {name}")
        made.append(Claim(name, statement, source, partial(judge, **arguments)))
        return judge

    return register


def claims_of(figure: str, study: str) -> list[Claim]:
    """The claims of a figure, made by the `claims.py` of its study; none where there are none."""
    part_of(study, "claims")
    return _claims.get(figure, [])


def decide(condition: bool, measured: str, expected: str) -> Judgement:
    """The claim holds if the condition does, and fails otherwise."""
    return Judgement("holds" if condition else "fails", measured, expected)


def undecided(reason: str, expected: str) -> Judgement:
    """The tables cannot decide the claim; the reason stands where the number would."""
    return Judgement("undecided", reason, expected)


def trimmed(values: np.ndarray | pd.Series) -> np.ndarray:
    """The sorted values without the smallest and the largest (paper A, Appendix E).

    All values, if there are fewer than four.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    return ordered[1:-1] if len(ordered) >= 4 else ordered


def compare(lower: pd.Series, higher: pd.Series) -> Verdict:
    """Whether `lower` is below `higher`, replicate by replicate (both indexed by replicate).

    Holds (fails) when the difference has the claimed (the opposite) sign in every trimmed
    replicate, and is undecided when the replicates disagree or there are fewer than three.
    """
    difference = trimmed((higher - lower).dropna())
    if len(difference) < 3:
        return "undecided"
    if (difference > 0).all():
        return "holds"
    return "fails" if (difference < 0).all() else "undecided"


def all_of(verdicts: list[Verdict]) -> Verdict:
    """The verdict over several points: fails if one fails, holds only if all hold."""
    if "fails" in verdicts:
        return "fails"
    return "holds" if verdicts and set(verdicts) == {"holds"} else "undecided"


def beyond(
    difference: pd.Series | np.ndarray, error: pd.Series | np.ndarray, by: float
) -> list[Verdict]:
    """For each point whether a difference is above zero by more than `by` standard errors.

    It *fails* where the difference is below zero by as much.
    """
    with np.errstate(all="ignore"):
        z = np.asarray(difference, dtype=float) / np.asarray(error, dtype=float)
    return ["holds" if each > by else "fails" if each < -by else "undecided" for each in z]


def judge(figure: str, claims: list[Claim], tables: Tables) -> pd.DataFrame:
    """The table of a figure's claims, one row per claim: what `<figure>.claims.csv` holds."""
    rows = []
    for claim in claims:
        judgement = claim.judge(tables)
        rows.append(
            {
                "figure": figure,
                "claim": claim.name,
                "statement": claim.statement,
                "source": claim.source,
                "verdict": judgement.verdict,
                "measured": judgement.measured,
                "expected": judgement.expected,
            }
        )
    columns = ["figure", "claim", "statement", "source", "verdict", "measured", "expected"]
    return pd.DataFrame(rows, columns=columns)


def as_text(judged: pd.DataFrame) -> str:
    """The claims as a short table for the terminal."""
    lines = []
    for row in judged.itertuples():
        lines.append(f"  {row.verdict:<9}  {row.claim}: {row.statement}")
        lines.append(f"{'':13}measured: {row.measured}")
        lines.append(f"{'':13}expected: {row.expected}  [{row.source}]")
    counts = judged["verdict"].value_counts()
    summary = ", ".join(f"{counts.get(v, 0)} {v}" for v in ("holds", "fails", "undecided"))
    return "\n".join([*lines, f"  {summary}"])
