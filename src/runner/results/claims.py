"""What a claim is: one statement, judged by the program over the tables of its figure.

A claim is data: a statement, its source, and its rule, which is a quantity and a comparison. Both
the verdict and the printed rule are made of the rule. In the `claims.py` of a study:

    CLAIMS = {
        "fig4": [
            Claim(
                "sgd-loses",
                "the construction beats SGD at every d",
                "paper A, Appendix E",
                ratio("sgd", "construction").above(1),
                needs={"target_width": 3},
            ),
        ],
    }

One test decides all claims (`evidence.verdict`). A claim *holds* if numbers as favorable as ours
would occur with a probability of at most 5 % if it were false. It *fails* if its opposite holds in
this sense. Otherwise it is *undecided*.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from runner.core.catalogue import part_of
from runner.results.evidence import Evidence, Verdict, number, verdict
from runner.results.quantities import Rule, Tables
from runner.results.rows import NoRows, Present

Kind = Literal["paper", "illustration", "ours"]
"""Whose statement it is: the paper's (an illustration, where the sizes at hand do not test it: a
bound that is far from tight, or a hypothesis that they do not meet), or one of ours."""

COLUMNS = (
    "figure", "claim", "kind", "statement", "source", "rule", "verdict", "measured", "note",
    "estimate", "low", "high", "unit", "n", "p_value", "point", "left_out", "data", "runs",
    "digest",
)  # fmt: skip
"""Of `<figure>.claims.csv`."""

MOST_LEFT_OUT = 0.2
"""Largest fraction of the measurements that may miss what a statement assumes: above it we do not
judge."""

CLOSE = 0.9
"""Three digits of numbers from here on, two below: many bounds are near one."""


class AllLeftOut(NoRows):
    """No number of a claim meets what it assumes."""


@dataclass(frozen=True)
class Found:
    """What the tables say of a claim: the evidence at each point, a note, the excluded fraction."""

    points: Sequence[Evidence]
    note: str = ""
    left_out: float = 0.0
    lost: Sequence[str] = ()
    """The points at which no measurement meets what the claim assumes."""
    unmet: str = ""
    """What is so in the excluded measurements: `the linear system lacks full rank`."""


@dataclass(frozen=True)
class Claim:
    """A statement in our words, its source (paper, section or theorem), and its rule.

    rule: several must all hold. needs: how many different values of a column the tables must have
    before the statement can be judged ("at every depth" is no statement about one depth), beside
    what its quantities need. note: what else is worth saying, of their columns: `MSE up to
    {mse.max:.2g}`.
    """

    name: str
    statement: str
    source: str
    rule: Rule | Sequence[Rule]
    kind: Kind = "paper"
    needs: Mapping[str, int] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        needs: dict[str, int] = {}
        for each in (*(rule.quantity.needs for rule in self.rules), self.needs):
            needs |= {name: max(count, needs.get(name, 0)) for name, count in each.items()}
        object.__setattr__(self, "needs", needs)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All that must hold."""
        return (self.rule,) if isinstance(self.rule, Rule) else tuple(self.rule)

    @property
    def printed(self) -> str:
        """The rule in words: what is said alike of several quantities is said once."""
        alike: dict[str, list[str]] = {}
        for rule in self.rules:
            said = f"{rule.comparison}{rule.quantity.place}"
            alike.setdefault(said, []).append(str(rule.quantity))
        parts = [
            f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} {said}"
            for said, names in alike.items()
        ]
        return "; ".join(parts)

    @property
    def attribution(self) -> str:
        """The source, and whose the statement is where it is not simply the paper's."""
        return self.source if self.kind == "paper" else f"{self.kind}; {self.source}"

    @property
    def digest(self) -> str:
        """Sixteen digits of a hash of the printed rule, its bounds, its arguments and its sizes.

        What a quantity computes is guarded by its numbers over the tables of the reference.
        """
        decided = [[asdict(each.comparison), each.quantity.arguments] for each in self.rules]
        content = json.dumps([self.printed, decided, self.needs], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def found(self, tables: Tables) -> Found:
        """Return what the tables say. Raises NoRows where a quantity has no rows."""
        points: list[Evidence] = []
        frames, lost = [], set()
        excluded: dict[str, float] = {}
        for rule in self.rules:
            every = rule.quantity.measure(tables)
            try:
                rows = rule.quantity.assuming(every)
            except NoRows as absent:
                raise AllLeftOut(f"in all measurements {rule.quantity.unmet}") from absent
            points += rule.points(rows)
            frames.append(rows)
            if len(rows) < len(every):
                fraction, unmet = 1 - len(rows) / len(every), rule.quantity.unmet
                excluded[unmet] = max(fraction, excluded.get(unmet, 0.0))
            lost |= rule.places(every) - rule.places(rows)
        note = self.note.format_map(_Columns(frames))
        note = "" if re.search(r"\bnan\b", note) else note
        most = max(excluded.values(), default=0.0)
        return Found(points, note, most, sorted(lost), " or ".join(excluded))


ours = partial(Claim, kind="ours")
illustration = partial(Claim, kind="illustration")


class _Columns(dict):
    """Columns of frames as a note says them: `{value.max:.2g}`, of the rows that have a number."""

    def __init__(self, frames: Iterable[pd.DataFrame]) -> None:
        rows = pd.concat(frames, ignore_index=True)
        super().__init__({name: _Statistics(rows[name].dropna()) for name in rows})


class _Statistics:
    """A column with its statistics as attributes: max, min, mean, median, sum, nunique, count."""

    def __init__(self, values: pd.Series) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        return getattr(self.values, name)()


@dataclass(frozen=True)
class Judgement:
    """A verdict, the deciding evidence, a note, and the excluded fraction."""

    verdict: Verdict
    note: str
    evidence: Evidence | None = None
    left_out: float = 0.0

    @property
    def measured(self) -> str:
        """The deciding number in words; empty without one."""
        return in_words(self.evidence) if self.evidence and self.evidence.n else ""


def claims_of(figure: str, study: str) -> list[Claim]:
    """Return the claims of a figure, in their order; none where its study makes none."""
    return getattr(part_of(study, "claims"), "CLAIMS", {}).get(figure, [])


def judgement(claim: Claim, tables: Tables) -> Judgement:
    """Judge one claim over the tables of its figure; undecided where its rows are absent."""
    if lacking := _lacking(claim, tables):
        return Judgement("undecided", lacking)
    try:
        with np.errstate(all="ignore"):  # a diverged run is data
            found = claim.found(Present(tables))
    except NoRows as absent:
        left_out = float(isinstance(absent, AllLeftOut))
        return Judgement("undecided", str(absent), left_out=left_out)
    decision, decisive = verdict(found.points)
    notes = [found.note]
    if decisive is None or not decisive.n:
        decision = "undecided"
        notes += [f"we have no number at {decisive.point}" if decisive and decisive.point else ""]
    if found.lost:
        decision = "undecided"
        notes += [f"in all measurements at {', '.join(found.lost)} {found.unmet}"]
    if found.left_out:
        notes += [f"in {percent(found.left_out)} of the measurements {found.unmet}"]
    if found.left_out > MOST_LEFT_OUT:
        decision = "undecided"
        notes += [f"above {percent(MOST_LEFT_OUT)} we do not judge"]
    elif decision == "undecided" and decisive and decisive.n < decisive.needed:
        notes += [f"at least {decisive.needed} {decisive.of} are needed to decide"]
    note = "; ".join(filter(None, notes))
    return Judgement(decision, note, decisive, found.left_out)


def _lacking(claim: Claim, tables: Tables) -> str:
    """Return which of the values that a claim needs the tables do not have; empty if they have
    them."""
    for column, needed in claim.needs.items():
        present = max((t[column].nunique() for t in tables.values() if column in t), default=0)
        if present < needed:
            word = claim.rules[0].quantity.names.column(column)
            values = "value" if present == 1 else "values"
            return f"the tables have {present or 'no'} {values} of {word}; {needed} are needed"
    return ""


def in_words(evidence: Evidence) -> str:
    """Return the deciding number as people write it.

    `error of SGD: 0.61 (0.55 to 0.72), 8 networks, d = 5`; of a fraction `7 of 8 networks, d = 5`.
    """
    n, name, of = evidence.n, evidence.quantity, evidence.of
    if np.isnan(evidence.estimate):
        said = f"{name}: no finite number, {n} {of}"
    elif evidence.unit == "share":
        count = round(evidence.estimate * n)
        said = f"all {n} {of}" if count == n else f"{count} of {n} {of}"
    else:
        low, high = evidence.low, evidence.high
        limits = f" ({_short(low)} to {_short(high)})" if np.isfinite([low, high]).any() else ""
        said = f"{name}: {_short(evidence.estimate)}{limits}, {n} {of}"
    return ", ".join(filter(None, [said, evidence.point.replace("_", " ")]))


def _short(value: float) -> str:
    """Write a number with two digits, or with three from `CLOSE` on."""
    return number(value, 3 if abs(value) >= CLOSE else 2)


def percent(fraction: float) -> str:
    """Write a fraction in percent, with a space that no line breaks at."""
    return f"{100 * fraction:.0f}\N{NO-BREAK SPACE}%"


def judge(figure: str, claims: Iterable[Claim], tables: Tables) -> pd.DataFrame:
    """Return the table of a figure's claims, one row per claim: what `<figure>.claims.csv`
    holds."""
    rows = [_row(figure, each, judgement(each, tables), tables) for each in claims]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(figure: str, claim: Claim, judged: Judgement, tables: Tables) -> dict[str, Any]:
    """Return one claim as a row of `COLUMNS`."""
    evidence = judged.evidence
    side = "p_fails" if judged.verdict == "fails" else "p_holds"
    numbers = {"estimate": "estimate", "low": "low", "high": "high", "p_value": side}
    return {
        "figure": figure,
        "claim": claim.name,
        "kind": claim.kind,
        "statement": claim.statement,
        "source": claim.source,
        "rule": claim.printed,
        "verdict": judged.verdict,
        "measured": judged.measured,
        "note": judged.note,
        **{column: _rounded(getattr(evidence, name, np.nan)) for column, name in numbers.items()},
        "unit": evidence.unit if evidence else "",
        "n": evidence.n if evidence else 0,
        "point": evidence.point if evidence else "",
        "left_out": _rounded(judged.left_out),
        "data": values_of(tables, "data") or "synthetic",
        "runs": values_of(tables, "run"),
        "digest": claim.digest,
    }


def _rounded(value: float) -> float:
    """Six digits: more would differ between machines."""
    return float(f"{value:.6g}")


def values_of(tables: Tables, column: str) -> str:
    """Return the different values of a column in all tables, in order, in one text."""
    found = {str(v) for table in tables.values() if column in table for v in table[column].unique()}
    return " ".join(sorted(found))


def distinct(judged: pd.DataFrame) -> pd.DataFrame:
    """Return the claims of several figures, each statement about the same numbers once.

    The same numbers have the same runs, or, since two figures may name their runs differently, the
    same data and measured values.
    """
    once = judged.drop_duplicates(["statement", "runs"])
    return once.drop_duplicates(["statement", "data", "measured"])
