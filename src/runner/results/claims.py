"""What a claim is: one statement, judged by the program over the tables of its figure.

One rule decides all claims (`evidence.verdict`): a claim *holds*, or *fails*, when that verdict is
wrong with a probability of at most 5 %, and is *undecided* otherwise. The `claims.py` of a study
has a judge for each statement, which gives the evidence at every point that the statement speaks
of, and lists its claims by figure, in the order in which they are judged:

    def sgd_loses(tables: Tables) -> Found: ...

    CLAIMS = {
        "fig4": [
            Claim(
                "sgd-loses",
                "the construction beats SGD at every d",
                "paper A, Appendix E",
                sgd_loses,
                "SGD / construction above 1 at every d",
                needs={"target_width": 3},
            ),
        ],
    }
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from runner.core.catalogue import part_of
from runner.results.evidence import Evidence, Verdict, verdict
from runner.results.rows import NoRows, Present

Tables = Mapping[str, pd.DataFrame]
"""The tables of a figure's runs by name: `tables["metrics"]`."""

Kind = Literal["paper", "illustration", "ours"]
"""Whose statement it is: the paper's (an illustration, where the sizes at hand do not test it: a
bound that is far from tight, or a hypothesis that they do not meet), or a control of ours."""

COLUMNS = (
    "figure", "claim", "kind", "statement", "source", "verdict", "measured", "expected",
    "estimate", "low", "high", "unit", "n", "p_value", "point", "data", "runs",
)  # fmt: skip
"""Of `<figure>.claims.csv`."""


@dataclass(frozen=True)
class Found:
    """What a judge found: the evidence at each point, and what else is worth saying."""

    points: Sequence[Evidence]
    words: str = ""


@dataclass(frozen=True)
class Judgement:
    """A verdict, what was measured and what the statement expects, and the deciding evidence."""

    verdict: Verdict
    measured: str
    expected: str
    evidence: Evidence | None = None


@dataclass(frozen=True)
class Claim:
    """A statement in our words, its source (paper, section or theorem), and how to judge it.

    judge: from the tables to the evidence; `partial` lets one function judge several statements.
    expected: the statement as an inequality, with its margins. needs: how many different values of
    a column the tables must have before the statement can be judged ("at every depth" is no
    statement about one depth).
    """

    name: str
    statement: str
    source: str
    judge: Callable[[Tables], Found]
    expected: str = ""
    kind: Kind = "paper"
    needs: Mapping[str, int] = field(default_factory=dict)

    @property
    def attribution(self) -> str:
        """The source, and whose the statement is where it is not simply the paper's."""
        return self.source if self.kind == "paper" else f"{self.kind}; {self.source}"


def claims_of(figure: str, study: str) -> list[Claim]:
    """Return the claims of a figure, in their order; none where its study makes none."""
    return getattr(part_of(study, "claims"), "CLAIMS", {}).get(figure, [])


def judgement(claim: Claim, tables: Tables) -> Judgement:
    """Judge one claim over the tables of its figure; undecided where its rows are absent."""
    if lacking := _lacking(claim, tables):
        return Judgement("undecided", lacking, claim.expected)
    try:
        with np.errstate(all="ignore"):  # a diverged run is data
            found = claim.judge(Present(tables))
    except NoRows as absent:
        return Judgement("undecided", str(absent), claim.expected)
    decision, decisive = verdict(found.points)
    if decisive is None or not decisive.n:
        lacking = f"no rows: {decisive.point}" if decisive and decisive.point else found.words
        return Judgement("undecided", lacking or "no rows to judge by", claim.expected, decisive)
    measured = "; ".join(filter(None, [found.words, in_words(decisive)]))
    if decision == "undecided" and decisive.n < decisive.needed:
        measured += f"; n = {decisive.needed} could decide"
    return Judgement(decision, measured, claim.expected, decisive)


def _lacking(claim: Claim, tables: Tables) -> str:
    """Which of the values that a claim needs the tables do not have; empty if they have them."""
    for column, needed in claim.needs.items():
        present = max((t[column].nunique() for t in tables.values() if column in t), default=0)
        if present < needed:
            return f"{present} of at least {needed} different values of {column}"
    return ""


def in_words(evidence: Evidence) -> str:
    """Effect, limits, how many numbers, and the point, as one phrase."""
    limits = f" ({evidence.low:.3g} to {evidence.high:.3g})"
    known = np.isfinite([evidence.low, evidence.high]).any()
    place = f" at {evidence.point}" if evidence.point else ""
    return (
        f"{evidence.unit} {evidence.estimate:.3g}{limits if known else ''}, n = {evidence.n}{place}"
    )


def judge(figure: str, claims: list[Claim], tables: Tables) -> pd.DataFrame:
    """The table of a figure's claims, one row per claim: what `<figure>.claims.csv` holds."""
    rows = [_row(figure, each, judgement(each, tables), tables) for each in claims]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(figure: str, claim: Claim, judged: Judgement, tables: Tables) -> dict[str, Any]:
    evidence = judged.evidence
    side = "p_fails" if judged.verdict == "fails" else "p_holds"
    numbers = {"estimate": "estimate", "low": "low", "high": "high", "p_value": side}
    return {
        "figure": figure,
        "claim": claim.name,
        "kind": claim.kind,
        "statement": claim.statement,
        "source": claim.source,
        "verdict": judged.verdict,
        "measured": judged.measured,
        "expected": judged.expected,
        **{column: _rounded(getattr(evidence, name, np.nan)) for column, name in numbers.items()},
        "unit": evidence.unit if evidence else "",
        "n": evidence.n if evidence else 0,
        "point": evidence.point if evidence else "",
        "data": values_of(tables, "data") or "synthetic",
        "runs": values_of(tables, "run"),
    }


def _rounded(value: float) -> float:
    """Six digits: more would differ between machines."""
    return float(f"{value:.6g}")


def values_of(tables: Tables, column: str) -> str:
    """The different values of a column in all tables, in order, in one text."""
    found = {str(v) for table in tables.values() if column in table for v in table[column].unique()}
    return " ".join(sorted(found))


def distinct(judged: pd.DataFrame) -> pd.DataFrame:
    """The claims without those that state the same of the same runs under another figure."""
    return judged.drop_duplicates(["statement", "runs"])
