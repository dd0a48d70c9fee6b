"""Drawings: how a study's figures are drawn, and the headers and captions of the pictures.

The `figures.py` of a study has a function for each drawing, the list of its figures, and
`overview`, the preview of one run:

    def draw(tables: Tables) -> tuple[Figure, pd.DataFrame]: ...

    FIGURES = [
        Drawing(
            "fig4",
            draw,
            whose="as in the paper",
            findings=[Finding(say_exact, holds=["exact", "constructions-beat-sgd"])],
            caption="Test error of the constructions and of SGD, against the width.",
            marks="lines: medians, dots: replicates",
        ),
    ]

    def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]: ...

The header above a picture states a finding only if the claims have the finding's verdicts in the
drawn tables. Otherwise the header says what is drawn. Scale `smoke` is too small for findings.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MplFigure

from runner.core.catalogue import package_of, part_of
from runner.core.errors import InputError
from runner.results.captions import Caption, dataset_in, repeated
from runner.results.rows import NoRows, Present, Tables
from runner.results.style import GREY, sheet
from runner.results.verdicts import MARKS

Draw = Callable[[Tables], tuple[MplFigure, pd.DataFrame]]
"""A function from tables to the picture and the table of the drawn numbers."""

Shows = Mapping[str, Iterable[str]]
"""Names, for example of methods, by their column."""

DOT = "  ·  "


@dataclass(frozen=True)
class Finding:
    """A sentence for the header of a picture, which is shown only if claims have certain verdicts.

    says: returns the sentence; all numbers in it are computed from the tables. holds, fails,
    undecided: names of the claims that must have these verdicts.
    """

    says: Callable[[Tables], str]
    holds: Sequence[str] = ()
    fails: Sequence[str] = ()
    undecided: Sequence[str] = ()

    @property
    def rests_on(self) -> dict[str, str]:
        """Return the verdict that each claim must have, by the claim's name."""
        needed = {"holds": self.holds, "fails": self.fails, "undecided": self.undecided}
        return {claim: verdict for verdict, claims in needed.items() for claim in claims}

    def said(self, tables: Tables, verdicts: Mapping[str, str]) -> str:
        """Return the sentence, or an empty text if it must not be shown.

        It is not shown if a claim has another verdict, or rows are absent. verdicts: by claim.
        """
        if any(verdicts.get(claim) != needed for claim, needed in self.rests_on.items()):
            return ""
        try:
            return self.says(Present(tables))
        except NoRows:
            return ""


@dataclass(frozen=True)
class Header:
    """The three lines of text above a picture."""

    what: str
    """Paper, figure, data, whose procedure, and number of replicates."""
    finding: str
    """The sentence of a `Finding`, or else what the picture shows."""
    counts: tuple[tuple[str, str], ...]
    """Pairs of a text and its color. They state how many claims hold, fail and are undecided, and
    what the marks are."""

    def as_json(self) -> bytes:
        """Return the texts without colors as JSON, the content of `<figure>.header.json`."""
        words = asdict(self) | {"counts": "".join(text for text, _ in self.counts)}
        return json.dumps(words, indent=1, ensure_ascii=False).encode()


@dataclass(frozen=True)
class Drawing:
    """How a figure is drawn, with the parts of its header and caption.

    - figure: the figure's name.
    - draw: makes the picture from the tables.
    - caption: the description of panels, points, lines, bars and bands, or a function that returns
      it for some tables.
    - whose: the training procedure: "as in the paper" or "ours".
    - findings: the header shows the first one whose claims have the needed verdicts.
    - marks: a key for a picture that has none: "lines: medians, dots: replicates".
    - shows: the values of a column that are drawn; the caption lists all others as not shown.
    - unread: tables that neither the drawing nor a claim reads. The reference does not store them.
    """

    figure: str
    draw: Draw
    caption: Caption
    whose: str = ""
    findings: Sequence[Finding] = ()
    marks: str = ""
    shows: Shows = field(default_factory=dict)
    unread: Sequence[str] = ()

    def __call__(self, tables: Tables) -> tuple[MplFigure, pd.DataFrame]:
        """Draw the rows of the names in `shows`; return the picture and the numbers."""
        return self.draw(self._shown(tables))

    def header(
        self,
        headline: str,
        tables: Tables,
        judged: pd.DataFrame,
        scale: str | None = None,
        overrides: Sequence[str] = (),
    ) -> Header:
        """Return the header of the picture.

        headline: a text such as "paper B, figure 1: ranks by depth". judged: the table of
        `claims.judge`. overrides: the parameters `key=value` that the user typed.
        """
        source, _, drawn = headline.partition(": ")
        verdicts = dict(zip(judged["claim"], judged["verdict"], strict=True))
        sentences = (finding.said(tables, verdicts) for finding in self.findings)
        finding = "" if scale == "smoke" else next(filter(None, sentences), "")
        changed = f"with {', '.join(overrides)}" if overrides else ""
        what = filter(None, (source, dataset_in(tables), self.whose, changed, repeated(tables)))
        counts = [*_counts(judged)]
        if self.marks:
            counts.append((DOT * bool(counts) + self.marks, GREY))
        return Header(upper(DOT.join(what)), upper(finding or drawn or source), tuple(counts))

    def description(self, tables: Tables) -> str:
        """Return the description of panels and marks, with the values that are not drawn."""
        caption = self.caption
        words = caption if isinstance(caption, str) else caption(self._shown(tables))
        names: dict[str, set[str]] = {column: set() for column in self.shows}
        for rows in tables.values():
            for column in {*names} & {*rows}:
                names[column] |= {*rows[column].dropna().unique()}
        absent = self.left_out(names)
        return f"{words} Not shown: {absent}." if absent else words

    def left_out(self, names: Shows) -> str:
        """Return which of these values are not drawn, as text; empty if all are drawn.

        names: the values of each column.
        """
        absent = {
            column: sorted({*names[column]} - {*drawn}) for column, drawn in self.shows.items()
        }
        return "; ".join(f"{column} {', '.join(some)}" for column, some in absent.items() if some)

    def _shown(self, tables: Tables) -> Tables:
        """Return the tables with the rows of the names in `shows`."""
        shown = {}
        for table, rows in tables.items():
            for column in set(self.shows) & set(rows):
                rows = rows[rows[column].isin(self.shows[column])]
            shown[table] = rows
        return Present(shown)


def _counts(judged: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield the counts of the paper's claims, then the counts of our additional claims."""
    ours = judged["kind"] == "ours"
    before = ""
    for label, rows in (("claims: ", judged[~ours]), ("our claims: ", judged[ours])):
        counts = rows["verdict"].value_counts()
        for verdict, (sign, plural, color) in MARKS.items():
            if count := counts.get(verdict, 0):
                yield before + label, GREY
                yield f"{sign} {count} {verdict if count == 1 else plural}", color
                before, label = DOT, ""


def upper(text: str) -> str:
    """Return a text with a capital at its beginning, unless it begins with a symbol such as α."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def drawing_of(name: str, study: str) -> Drawing:
    """Return the drawing of the figure `name`.

    Raises InputError if the study's `figures.py` has none.
    """
    for drawing in getattr(part_of(study, "figures"), "FIGURES", []):
        if drawing.figure == name:
            return drawing
    path = f"{package_of(study).replace('.', '/')}/figures.py"
    raise InputError(f"figure={name} has no drawing: FIGURES of {path} does not list it")


def draw(drawing: Draw, tables: Tables) -> tuple[MplFigure, pd.DataFrame]:
    """Return the picture and the table of the drawn numbers.

    If rows are absent, the picture is an empty panel with a text about the absent rows. A drawing
    with `or_empty(axes)` leaves only one panel empty.
    """
    try:
        with np.errstate(all="ignore"):  # a diverged run is data
            return drawing(Present(tables))
    except NoRows as absent:
        picture, ((axes,),) = sheet(1, 1)
        _leave_empty(axes, absent)
        return picture, pd.DataFrame({"absent": [str(absent)]})


@contextmanager
def or_empty(axes: Axes, *others: Axes) -> Iterator[None]:
    """Leave a panel empty if the block raises NoRows, with a text about the absent rows.

    others: further axes, which are then removed.
    """
    try:
        yield
    except NoRows as absent:
        _leave_empty(axes, absent)
        for other in others:
            other.set_axis_off()


def _leave_empty(axes: Axes, absent: NoRows) -> None:
    middle: Any = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.5, 0.5, str(absent), color="grey", fontsize="small", wrap=True, **middle)
