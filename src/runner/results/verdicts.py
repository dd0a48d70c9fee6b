"""Verdicts as lines of text, at the end of a command and in `runner show`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from runner.core.catalogue import judges
from runner.results.style import GREY

KINDS = {"paper": "", "ours": " (additional)", "illustration": " (a loose bound)"}

MARKS = {
    "holds": ("✓", "hold", "#00664b"),
    "fails": ("✗", "fail", "#a84300"),
    "undecided": ("?", "undecided", GREY),
}
"""For each verdict a sign (readable in grey print), the verb in the plural, and a color."""

MOST_CLAIMS = 14
"""The largest number of printed claims. Claims that do not hold are shown in any case."""

STANDINGS = {
    "pre-registered": "the rule was stored before these numbers",
    "exploratory": "numbers of this seed were known before the rule had its present form",
}
"""The possible standings of a stored verdict, and what they mean."""


def lines(judged: pd.DataFrame, path: Path, scale: str, changed: Sequence[str] = ()) -> list[str]:
    """Return one text for each claim, of one or two lines, followed by a summary.

    The paper's claims come first. If there are many claims, the least important ones are replaced
    by the path of their file. Without claims the list is empty. judged: the result of
    `claims.judge`, or claims of the reference. path: the CSV file of these claims. scale: the scale
    of the runs. changed: the keys of the parameters that the user typed.
    """
    ordered = judged.iloc[judged["kind"].map([*KINDS].index).argsort(kind="stable")]
    fails, holds = ordered["verdict"] == "fails", ordered["verdict"] == "holds"
    is_important = ~holds if judges(scale) else fails
    if len(ordered) > MOST_CLAIMS:
        room = MOST_CLAIMS - 1 - is_important.sum()
        ordered = ordered[is_important | ((~is_important).cumsum() <= room)]
    texts = [line(row, scale, bool(changed)) for row in ordered.itertuples()]
    if left := len(judged) - len(ordered):
        verdict = f" that hold{'s' if left == 1 else ''}" if judges(scale) else ""
        texts.append(f"… and {left} more{verdict}: {path}")
    return [*texts, summary(judged, scale, changed)] if len(judged) else []


def line(row: Any, scale: str = "", is_changed: bool = False) -> str:
    """Return a claim's verdict and statement, and below it the measured numbers.

    An example is `✓ holds      statement`, and in the next line `error: 0.61 (0.55 to 0.72; bound:
    below 1; 8 networks)`. For an undecided claim the reason is added. At scale `smoke` the reason
    is the same for all claims, so only `summary` gives it, unless the claim has no numbers in a
    figure with changed parameters. row: a row of `claims.judge`. is_changed: whether there are any.
    """
    begin = f"{MARKS[row.verdict][0]} {row.verdict:<9}  {row.statement}{KINDS[row.kind]}"
    has_reason = row.verdict == "undecided" and (judges(scale) or is_changed and not row.n)
    reason = row.note if has_reason else ""
    measured = "; ".join(filter(None, [row.measured, reason]))
    return f"{begin}\n{'':13}{measured}" if measured else begin


def summary(judged: pd.DataFrame, scale: str, changed: Sequence[str] = ()) -> str:
    """Return in sentences how many claims hold, fail and are undecided.

    judged: the result of `claims.judge`, or claims of the reference. For claims of the reference, a
    sentence says how many verdicts are pre-registered. At scale `smoke` a sentence says that the
    scale is too small, unless a parameter in `changed` is why each claim is undecided.
    """
    verbs = {
        "holds": ("holds", "hold"),
        "fails": ("fails", "fail"),
        "undecided": ("is undecided", "are undecided"),
    }
    counts = judged["verdict"].value_counts().to_dict()
    parts = [f"{counts[key]} {verbs[key][counts[key] > 1]}" for key in verbs if key in counts]
    number, _, rest = parts[0].partition(" ")
    noun = "claim" if number == "1" else "claims"
    text = f"{', '.join([f'{number} {noun} {rest}', *parts[1:]])}."
    if not judges(scale):
        open_ = judged.loc[judged["verdict"] == "undecided", "note"]
        chosen = sum(_names_one(note, changed) for note in open_)
        small = " smoke is too small to judge: scale=quick is the first that can."
        others = small.replace("judge", "judge the others") if chosen else small
        return text + (others if chosen < len(open_) else "")
    return f"{text} {_standing(judged['standing'])}" if "standing" in judged else text


def _names_one(note: str, keys: Sequence[str]) -> bool:
    """Return whether a note names one of some parameters: `no rows: normalization=none`."""
    return any(re.search(rf"\b{re.escape(key.removesuffix('s'))}s?\b", note) for key in keys)


def _standing(standings: pd.Series) -> str:
    """Return how many verdicts are pre-registered, and how many exploratory."""
    counts = standings.value_counts()
    if len(counts) == 1:
        (word,) = counts.index
        return f"{'All ' if len(standings) > 1 else ''}{word}: {STANDINGS[word]}.".capitalize()
    return f"{', '.join(f'{counts[word]} {word}' for word in STANDINGS)}."
