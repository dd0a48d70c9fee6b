"""What the `figures.py` of a study states: how its figures are drawn, and what is said of them.

A `figures.py` has a function for each drawing, the list of its figures, and `overview`, the preview
of one run:

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

The header above a picture says a finding only if its claims have the verdicts that it needs in the
tables that are drawn. Otherwise the header says what is drawn. Scale `smoke` is too small to find
anything.
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
from runner.results.captions import Said, dataset_in, repeated
from runner.results.rows import NoRows, Present, Tables
from runner.results.style import GREY, sheet

Draw = Callable[[Tables], tuple[MplFigure, pd.DataFrame]]
"""From tables to the picture and the table of the numbers drawn in it."""

Shows = Mapping[str, Iterable[str]]
"""Names of methods and the like, by their column."""

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
        """Return the verdict that the finding needs of each of its claims, by name."""
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
        """Return the lines as the content of `<figure>.header.json`."""
        return json.dumps(self.as_words(), indent=1, ensure_ascii=False).encode()


@dataclass(frozen=True)
class Drawing:
    """How a figure is drawn, and what is said of it.

    whose: way of doing it: "as in the paper", "ours". findings: of these the header says in bold
    the first that its claims allow. caption: what its panels show, and what its points, lines, bars
    and bands are, or a function that says so from the tables. marks: what lines, dots and bands are
    where nothing in the picture says it: "lines: medians, dots: replicates"; the header's first
    line ends with it. shows: the names that it draws; rows of others are not given to it, and the
    caption names them. unread: tables of its runs that neither it nor its claims read; the
    reference does not keep them.
    """

    figure: str
    draw: Draw
    caption: Said
    whose: str = ""
    findings: Sequence[Finding] = ()
    marks: str = ""
    shows: Shows = field(default_factory=dict)
    unread: Sequence[str] = ()

    def __call__(self, tables: Tables) -> tuple[MplFigure, pd.DataFrame]:
        """Draw the rows with the names that are shown; return the picture and the numbers."""
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

        headline: "paper B, figure 1: what is drawn"; judged: the claims as `claims.judge` gives
        them; overrides: what was typed to make it another figure.
        """
        source, _, drawn = headline.partition(": ")
        verdicts = dict(zip(judged["claim"], judged["verdict"], strict=True))
        sentences = (finding.said(tables, verdicts) for finding in self.findings)
        said = "" if scale == "smoke" else next(filter(None, sentences), "")
        changed = f"with {', '.join(overrides)}" if overrides else ""
        what = filter(None, (source, dataset_in(tables), self.whose, changed, repeated(tables)))
        counts = [*_counts(judged)]
        if self.marks:
            counts.append((DOT * bool(counts) + self.marks, GREY))
        return Header(upper(DOT.join(what)), upper(said or drawn or source), tuple(counts))

    def said(self, tables: Tables) -> str:
        """Return what the marks are, and which names are not in the picture."""
        said = self.caption
        words = said if isinstance(said, str) else said(self._shown(tables))
        absent = self.left_out({column: _names(column, tables) for column in self.shows})
        return f"{words} The picture does not show {absent}." if absent else words

    def left_out(self, names: Shows) -> str:
        """Return which of the names are not shown, as text; empty where there are none."""
        others = {
            column: sorted(set(names[column]) - set(known)) for column, known in self.shows.items()
        }
        return "; ".join(f"{column} {', '.join(some)}" for column, some in others.items() if some)

    def _shown(self, tables: Tables) -> Tables:
        """Return the rows with the names that are shown."""
        shown = {}
        for table, rows in tables.items():
            for column in set(self.shows) & set(rows):
                rows = rows[rows[column].isin(self.shows[column])]
            shown[table] = rows
        return Present(shown)


def _names(column: str, tables: Tables) -> set[str]:
    """Return the values of a column in the tables that have it."""
    return {
        name
        for rows in tables.values()
        if column in rows
        for name in rows[column].dropna().unique()
    }


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


def upper(text: str) -> str:
    """Return a text with a capital at its beginning; a symbol, as α, stays what it is."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def drawing_of(name: str, study: str) -> Drawing:
    """Return the drawing of a figure. Raises InputError when its study's `figures.py` has none."""
    for drawing in getattr(part_of(study, "figures"), "FIGURES", []):
        if drawing.figure == name:
            return drawing
    place = f"{package_of(study).replace('.', '/')}/figures.py"
    raise InputError(f"figure={name} has no drawing: FIGURES of {place} does not list it")


def draw(drawing: Draw, tables: Tables) -> tuple[MplFigure, pd.DataFrame]:
    """Draw the picture and the numbers drawn; where all rows for it are absent, an empty panel that
    says which.

    A panel alone stays empty where its rows are drawn `with or_empty(axes):`.
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
    """Draw what is within; where the rows for it are absent, the first axes say which."""
    try:
        yield
    except NoRows as absent:
        _leave_empty(axes, absent)
        for other in others:
            other.set_axis_off()


def _leave_empty(axes: Axes, absent: NoRows) -> None:
    """Write on the axes which rows are absent."""
    middle: Any = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.5, 0.5, str(absent), color="grey", fontsize="small", wrap=True, **middle)
