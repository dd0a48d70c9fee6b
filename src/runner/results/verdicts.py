"""Verdicts as lines of text: what a command prints at its end, and `runner show`."""

from pathlib import Path
from typing import Any

import pandas as pd

from runner.results.drawing import MARKS

KINDS = {"paper": "", "ours": " (ours)", "illustration": " (an illustration)"}

MOST_CLAIMS = 14
"""Lines, but for claims that do not hold: those are always shown."""

STATEMENT = 72
"""The column at which the measured numbers begin if the statement is shorter."""

STANDINGS = {
    "pre-registered": "the rule stood before these numbers",
    "exploratory": "numbers of this seed were known before the rule was what it is",
}
"""Of kept verdicts."""


def lines(judged: pd.DataFrame, path: Path, scale: str) -> list[str]:
    """Return a line for each claim, the papers' own first, and how many hold, fail and are
    undecided.

    judged: as `claims.judge` gives it, or as it is kept; with the column `standing` the last line
    says which are pre-registered. path: of its CSV file, which the last line but one
    names where claims that hold are left out.
    """
    ordered = judged.sort_values(
        "kind", key=lambda kind: kind.map(list(KINDS).index), kind="stable"
    )
    of_interest = (
        ordered["verdict"] != "holds" if scale != "smoke" else ordered["verdict"] == "fails"
    )
    if len(ordered) > MOST_CLAIMS:
        room = MOST_CLAIMS - 1 - of_interest.sum()
        ordered = ordered[of_interest | ((~of_interest).cumsum() <= room)]
    said = [line(row, scale) for row in ordered.itertuples()]
    if left := len(judged) - len(ordered):
        what = "" if scale == "smoke" else f" that hold{'s' * (left == 1)}"
        said.append(f"… and {left} more{what}: {path}")
    return [*said, summary(judged, scale)] if len(judged) else []


def line(row: Any, scale: str = "") -> str:
    """Return a claim and what was measured: `✓ holds      statement   error: 0.61 (0.55 to 0.72), 8
    networks`."""
    begin = f"{MARKS[row.verdict][0]} {row.verdict:<9}  {row.statement}{KINDS[row.kind]}"
    return f"{begin:<{13 + STATEMENT}}   {_measured(row, scale)}".rstrip()


def _measured(row: Any, scale: str) -> str:
    """Return the deciding number, and of an undecided claim the reason, which at scale smoke is
    said for all."""
    is_said = row.verdict == "undecided" and scale != "smoke"
    return "; ".join(filter(None, [row.measured, row.note if is_said else ""]))


def summary(judged: pd.DataFrame, scale: str) -> str:
    """Return how many claims hold, fail and are undecided, in sentences, with their standing."""
    words = {"holds": ("holds", "hold"), "fails": ("fails", "fail")}
    words["undecided"] = ("is undecided", "are undecided")
    counts = {verdict: int((judged["verdict"] == verdict).sum()) for verdict in words}
    parts = [f"{n} {words[verdict][n > 1]}" for verdict, n in counts.items() if n]
    number, _, rest = parts[0].partition(" ")
    parts[0] = f"{number} {'claim' if number == '1' else 'claims'} {rest}"
    said = f"{', '.join(parts)}."
    if scale == "smoke":
        small = " smoke is too small to judge: scale=quick is the first that can."
        return said + small * (counts["undecided"] > 0)
    return f"{said} {_standing(judged['standing'])}" if "standing" in judged else said


def _standing(standings: pd.Series) -> str:
    """Return how many verdicts are pre-registered, and how many exploratory."""
    counts = standings.value_counts()
    if len(counts) == 1:
        (word,) = counts.index
        return f"{'All ' * (len(standings) > 1)}{word}: {STANDINGS[word]}.".capitalize()
    return f"{', '.join(f'{counts[word]} {word}' for word in STANDINGS)}."
