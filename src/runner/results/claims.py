"""What a claim is: one statement, judged by the program over the tables of its figure.

One rule decides all claims (`evidence.verdict`): a claim *holds*, or *fails*, when that verdict is
wrong with a probability of at most 5 %, and is *undecided* otherwise. In the `claims.py` of a study
each statement stands above its judge, which gives the evidence at every point that the statement
speaks of:

    @claim(
        figure="fig4",
        name="sgd-loses",
        statement="the construction beats SGD at every d",
        source="paper A, Appendix E",
        expected="SGD / construction above 1 at every d",
        needs={"target_width": 3},
    )
    def sgd_loses(tables: Tables) -> Found: ...

or all statements stand in one dictionary, the claims of each figure in their order:

    CLAIMS = {"fig4": [Claim("sgd-loses", "the construction beats SGD at every d", ...), ...]}
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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


_claims: dict[str, list[Claim]] = {}
"""The claims of each figure, as far as the modules that make them have been imported."""


def claim(
    *,
    figure: str,
    name: str,
    statement: str,
    source: str,
    expected: str = "",
    kind: Kind = "paper",
    needs: Mapping[str, int] | None = None,
    **arguments: Any,
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
        bound = partial(judge, **arguments)
        made.append(Claim(name, statement, source, bound, expected, kind, needs or {}))
        return judge

    return register


def claims_of(figure: str, study: str) -> list[Claim]:
    """The claims of a figure: those that the `claims.py` of its study lists in `CLAIMS`, by figure,
    or makes with `@claim`; none where there are none."""
    module = part_of(study, "claims")
    return getattr(module, "CLAIMS", _claims).get(figure, [])


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
