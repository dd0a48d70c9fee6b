"""What a figure says above its picture: what it is, what was found, and what its claims came to.

The finding is said only where the claims that it rests on have, in these very tables, the verdicts
that it needs; otherwise the header says what is drawn. Scale `smoke` is too small to find anything.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from runner.results.captions import dataset_in, repeated
from runner.results.claims import Tables
from runner.results.rows import NoRows, Present
from runner.results.style import GREY

MARKS = {"holds": ("✓", "hold", "#00664b"), "fails": ("✗", "fail", "#a84300")}
MARKS |= {"undecided": ("?", "undecided", GREY)}
"""Of a verdict: its sign, which grey print keeps, its plural, and its color."""

DOT = "  ·  "


@dataclass(frozen=True)
class Finding:
    """A sentence from the tables, and the claims without whose verdicts it is not said.

    says: the sentence; all of its numbers are computed.
    """

    says: Callable[[Tables], str]
    holds: Sequence[str] = ()
    fails: Sequence[str] = ()
    undecided: Sequence[str] = ()

    @property
    def rests_on(self) -> dict[str, str]:
        """The verdict that it needs of each of its claims, by name."""
        needed = {"holds": self.holds, "fails": self.fails, "undecided": self.undecided}
        return {claim: verdict for verdict, claims in needed.items() for claim in claims}

    def said(self, tables: Tables, verdicts: Mapping[str, str]) -> str:
        """Return the sentence; nothing where a verdict is another, or rows are absent."""
        if any(verdicts.get(claim) != needed for claim, needed in self.rests_on.items()):
            return ""
        try:
            return self.says(Present(tables))
        except NoRows:
            return ""


@dataclass(frozen=True)
class Header:
    """The lines above a picture."""

    what: str
    """Paper, figure, data, whose way of doing it, and how often it was repeated."""
    finding: str
    """What was found, or what is drawn."""
    counts: tuple[tuple[str, str], ...]
    """How many claims hold, fail and are undecided, and what marks are: words and their colors."""

    def as_words(self) -> dict[str, Any]:
        """Return the lines as text, for pages that write them."""
        return asdict(self) | {"counts": "".join(text for text, _ in self.counts)}

    def as_json(self) -> bytes:
        """These words as the content of `<figure>.header.json`."""
        return json.dumps(self.as_words(), indent=1, ensure_ascii=False).encode()


def header(
    headline: str,
    whose: str,
    findings: Sequence[Finding],
    tables: Tables,
    judged: pd.DataFrame,
    scale: str | None = None,
    overrides: Sequence[str] = (),
    marks: str = "",
) -> Header:
    """Return the header of a figure.

    headline: "paper B, figure 1: what is drawn"; findings: the first that can be said is; judged:
    the claims as `claims.judge` gives them; overrides: what was typed to make it another figure;
    marks: what lines, dots and bands are.
    """
    source, _, drawn = headline.partition(": ")
    verdicts = dict(zip(judged["claim"], judged["verdict"], strict=True))
    said = "" if scale == "smoke" else next(filter(None, _said(findings, tables, verdicts)), "")
    changed = f"with {', '.join(overrides)}" if overrides else ""
    what = filter(None, (source, dataset_in(tables), whose, changed, repeated(tables)))
    first, finding = DOT.join(what), said or drawn or source
    counts = [*_counts(judged)]
    if marks:
        counts.append((DOT * bool(counts) + marks, GREY))
    return Header(upper(first), upper(finding), tuple(counts))


def _said(
    findings: Sequence[Finding], tables: Tables, verdicts: Mapping[str, str]
) -> Iterator[str]:
    return (finding.said(tables, verdicts) for finding in findings)


def upper(text: str) -> str:
    """Return a text with a capital at its beginning; a symbol, as α, stays what it is."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def _counts(judged: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield the counts of the paper's claims, then the counts of our additional claims."""
    ours = judged["kind"] == "ours"
    before = ""
    for whose, rows in (("claims: ", judged[~ours]), ("our claims: ", judged[ours])):
        counts = rows["verdict"].value_counts()
        for verdict, (sign, plural, color) in MARKS.items():
            if count := counts.get(verdict, 0):
                yield before + whose, GREY
                yield f"{sign} {count} {verdict if count == 1 else plural}", color
                before, whose = DOT, ""
