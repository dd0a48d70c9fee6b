"""Claims: statements about a figure, judged by the program on the figure's tables.

A claim is data: a statement, its source, and its rule. The rule is a quantity with a comparison;
the verdict and the printed rule both come from it. In the `claims.py` of a study:

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

All claims are decided by the same test (`evidence.verdict`). A claim *holds* if numbers as
favorable as ours would occur with a probability of at most 5 % if the claim were false. A claim
*fails* if its opposite holds in this sense. Otherwise the claim is *undecided*.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from runner.core.catalogue import figure_names, package_of, part_of
from runner.core.errors import InputError
from runner.results import digests
from runner.results.evidence import Evidence, Verdict, verdict
from runner.results.quantities import Rule, Tables
from runner.results.rows import NoRows, Present
from runner.results.sentences import CASES, LEAST_CERTAIN, in_words, rules_in_words

Kind = Literal["paper", "illustration", "ours"]
"""Where a statement comes from: the paper, or this project (`ours`). An `illustration` is a
statement of the paper that our sizes do not test: a bound is far from tight, or a hypothesis is not
met."""

COLUMNS = (
    "figure", "claim", "kind", "statement", "source", "rule", "verdict", "measured", "note",
    "estimate", "low", "high", "unit", "n", "p_value", "point", "left_out", "data", "runs",
    "digest",
)  # fmt: skip
"""The columns of `<figure>.claims.csv`."""

MOST_LEFT_OUT = 0.2
"""Largest fraction of measurements that an assumption may exclude: above it we do not judge."""


class AllLeftOut(NoRows):
    """Error if no measurement for a claim meets the assumption of the claim's quantity."""


@dataclass(frozen=True)
class Measurement:
    """The numbers that decide a claim: one `Evidence` for each point, such as `d = 5`.

    note: further numbers for the printed verdict. left_out: the fraction of measurements, from 0 to
    1, that are excluded because they do not meet the assumption of the claim's quantity.
    """

    points: Sequence[Evidence]
    note: str = ""
    left_out: float = 0.0
    lost: Sequence[str] = ()
    """The points, in words, at which no measurement meets the assumption."""
    unmet: str = ""
    """Why measurements are excluded: `the linear system lacks full rank`."""


@dataclass(frozen=True)
class Claim:
    """A statement about a figure in our words, and the rule by which it is judged.

    - name: the claim's short name;
    - source: the section or theorem of the paper;
    - rule: one rule, or several rules that must all hold;
    - kind: `paper`, `ours` or `illustration`, see `Kind`;
    - needs: how many different values a column must have, by column. "At every depth" needs several
      depths. The needs of the rules' quantities are added.
    - note: more numbers for the printed verdict, from the columns of the quantities: `MSE up to
      {mse.max:.2g}`.
    - about: the values of parameters that the statement names, as the architecture VGG-19. Runs
      with another value do not decide it.
    """

    name: str
    statement: str
    source: str
    rule: Rule | Sequence[Rule]
    kind: Kind = "paper"
    needs: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        needs: dict[str, int] = {}
        for counts in (*(rule.quantity.needs for rule in self.rules), self.needs):
            needs |= {name: max(count, needs.get(name, 0)) for name, count in counts.items()}
        object.__setattr__(self, "needs", needs)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return all rules of the claim, which must all hold."""
        return (self.rule,) if isinstance(self.rule, Rule) else tuple(self.rule)

    @property
    def printed(self) -> str:
        """Return all rules in one sentence, see `sentences`."""
        return rules_in_words(self.rules)

    @property
    def tests(self) -> str:
        """Return the names of the statistical tests of the rules: `sign test, 5 %`."""
        return ", and ".join(dict.fromkeys(rule.test for rule in self.rules))

    @property
    def attribution(self) -> str:
        """Return the source of the claim, with its kind unless this is `paper`: `ours; Eq. (2)`."""
        return self.source if self.kind == "paper" else f"{self.kind}; {self.source}"

    @property
    def digest(self) -> str:
        """Return sixteen digits that change when the rules or needs change, see `digests`."""
        return digests.digest(self.rules, self.needs)

    def measure(self, tables: Tables) -> Measurement:
        """Return the evidence for the claim in these tables.

        Raises NoRows if the tables lack rows for a quantity. Raises AllLeftOut if no row of a
        quantity meets the assumption.
        """
        points: list[Evidence] = []
        frames, lost = [], set()
        excluded: dict[str, float] = {}
        for rule in self.rules:
            measured = rule.quantity.measure(tables)
            try:
                rows = rule.quantity.assuming(measured)
            except NoRows as absent:
                raise AllLeftOut(f"in all measurements {rule.quantity.unmet}") from absent
            points += rule.points(rows)
            frames.append(rows)
            if len(rows) < len(measured):
                fraction, unmet = 1 - len(rows) / len(measured), rule.quantity.unmet
                excluded[unmet] = max(fraction, excluded.get(unmet, 0.0))
            lost |= rule.places(measured) - rule.places(rows)
        note = self.note.format_map(_Columns(frames))
        note = "" if re.search(r"\bnan\b", note) else note
        most = max(excluded.values(), default=0.0)
        return Measurement(points, note, most, sorted(lost), " or ".join(excluded))


ours = partial(Claim, kind="ours")
illustration = partial(Claim, kind="illustration")


class _Columns(dict):
    """Columns of frames, without nan, for fields of a note such as `{value.max:.2g}`."""

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
    """The verdict on a claim, and the reasons for it.

    - note: reasons and more numbers, as text;
    - evidence: the test at the point that decides the verdict; None without numbers;
    - left_out: the fraction of measurements that the assumption of the quantity excludes;
    - case: which of several points decides, in words; empty if there is one.
    """

    verdict: Verdict
    note: str
    evidence: Evidence | None = None
    left_out: float = 0.0
    case: str = ""

    @property
    def measured(self) -> str:
        """Return the numbers at the point that decides the verdict, in words.

        The text is empty if there are none.
        """
        return in_words(self.evidence, self.case) if self.evidence and self.evidence.n else ""


def claims_of(figure: str, study: str) -> list[Claim]:
    """Return the claims about a figure, in their order; empty if there are none.

    figure: the figure's name. study: the name of the study whose runs it draws. Raises InputError
    if the study has claims about a figure that does not exist.
    """
    claims = getattr(part_of(study, "claims"), "CLAIMS", {})
    if unknown := sorted({*claims} - {*figure_names()}):
        path = f"{package_of(study).replace('.', '/')}/claims.py"
        raise InputError(f"CLAIMS of {path}: no figure has the name {unknown[0]}")
    return claims.get(figure, [])


def judgement(claim: Claim, tables: Tables) -> Judgement:
    """Judge one claim on the tables of its figure; return verdict, note and evidence.

    The verdict is "undecided" if rows are absent, or if the claim's assumption excludes too many
    measurements.
    """
    if absent := lacking(claim, tables):
        return Judgement("undecided", absent)
    try:
        with np.errstate(all="ignore"):  # a diverged run is data
            measured = claim.measure(Present(tables))
    except NoRows as absent:
        left_out = float(isinstance(absent, AllLeftOut))
        return Judgement("undecided", str(absent), left_out=left_out)
    except KeyError as error:  # of pandas, which names the column alone
        raise LookupError(f"claim {claim.name}: the tables have no {error}") from error
    decision, decisive = verdict(measured.points)
    notes = [measured.note]
    if decisive is None or not decisive.n:
        decision = "undecided"
        notes += [f"we have no number at {decisive.point}" if decisive and decisive.point else ""]
    if measured.lost:
        decision = "undecided"
        notes += [f"in all measurements at {', '.join(measured.lost)} {measured.unmet}"]
    if measured.left_out:
        notes += [f"in {percent(measured.left_out)} of the measurements {measured.unmet}"]
    if measured.left_out > MOST_LEFT_OUT:
        decision = "undecided"
        notes += [f"above {percent(MOST_LEFT_OUT)} we do not judge"]
    elif decision == "undecided" and decisive and decisive.n < decisive.needed:
        notes += [f"at least {decisive.needed} {decisive.of} are needed to decide"]
    note = "; ".join(filter(None, notes))
    alike = [each for each in measured.points if decisive and each.quantity == decisive.quantity]
    case = CASES[decision] if len(alike) > 1 else ""
    if decisive and decision != "fails" and any(x.distance < decisive.distance for x in alike):
        case = LEAST_CERTAIN
    return Judgement(decision, note, decisive, measured.left_out, case)


def lacking(claim: Claim, tables: Tables) -> str:
    """Return in words why tables cannot decide a claim; empty if they can.

    Either a column has too few values, or the runs are of something else than the statement.
    """
    for column, value in claim.about.items():
        ran = {other for rows in tables.values() if column in rows for other in rows[column]}
        if others := sorted(ran - {value}):
            names = claim.rules[0].quantity.names
            words = ", ".join(names.value(column, other) for other in others)
            return f"the statement is about {names.value(column, value)}, the runs are of {words}"
    for column, needed in claim.needs.items():
        present = max((t[column].nunique() for t in tables.values() if column in t), default=0)
        if present < needed:
            word = claim.rules[0].quantity.names.column_in_rule(column)
            values = "value" if present == 1 else "values"
            return f"the tables have {present or 'no'} {values} of {word}; {needed} are needed"
    return ""


def percent(fraction: float) -> str:
    """Return a fraction in percent, without decimals and with a no-break space."""
    return f"{100 * fraction:.0f}\N{NO-BREAK SPACE}%"


def judge(figure: str, claims: Iterable[Claim], tables: Tables) -> pd.DataFrame:
    """Judge claims on the tables of their figure; return a table with the columns `COLUMNS`.

    The table has a row for each claim. figure: the figure's name, for the first column.
    """
    rows = [_row(figure, claim, judgement(claim, tables), tables) for claim in claims]
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
    """Return a number with six digits. Further digits would differ between machines."""
    return float(f"{value:.6g}")


def values_of(tables: Tables, column: str) -> str:
    """Return the different values of a column in all tables as one text, joined by spaces.

    The values are sorted as text, so 10 comes before 2. The text is empty if no table has the
    column.
    """
    values = (table[column].unique() for table in tables.values() if column in table)
    return " ".join(sorted({str(value) for column_values in values for value in column_values}))


def distinct(judged: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of judged claims without repetitions.

    Two rows are repetitions if they have the same statement and are about the same numbers. Numbers
    are the same if they are of the same runs, or if data and measured values are equal. The second
    condition is needed because two figures may have different names for the same runs. judged: rows
    of `judge` for several figures.
    """
    once = judged.drop_duplicates(["statement", "runs"])
    return once.drop_duplicates(["statement", "data", "measured"])
