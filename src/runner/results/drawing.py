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

If the runs of a study have different tables, `overview` is a function for each: `{table: draw}`.
The header above a picture states a finding only if certain claims have certain verdicts in the
drawn tables. Otherwise the header says what is drawn. Scale `smoke` is too small for findings.
"""

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MplFigure

from runner.core.catalogue import judges, package_of, part_of
from runner.core.errors import InputError
from runner.core.shell import command
from runner.results.captions import Caption, dataset_in, repeated
from runner.results.labels import names_of, upper
from runner.results.rows import NoRows, Present, Tables
from runner.results.style import SMALL, sheet
from runner.results.verdicts import MARKS

Draw = Callable[[Tables], tuple[MplFigure, pd.DataFrame]]
"""A function of the tables that returns the picture and a table of the drawn numbers."""

Shows = Mapping[str, Container[str]]
"""The values that are drawn, for example methods, by column. `Names` and `Datasets` of
`core.choices` also contain the user's own."""

KINDS = {"paper": "claims: ", "ours": "additional: ", "illustration": "loose bounds: "}
"""What a caption writes before the counts of each kind of claim."""

DOT = "  ·  "


@dataclass(frozen=True)
class Finding:
    """A sentence for the header of a picture. It is shown only if claims have certain verdicts.

    says: a function of the tables that returns the sentence; all numbers in it are computed from
    the tables. holds, fails, undecided: the names of the claims that must have this verdict. when:
    further verdicts, by the claim's name.
    """

    says: Callable[[Tables], str]
    holds: Sequence[str] = ()
    fails: Sequence[str] = ()
    undecided: Sequence[str] = ()
    when: Mapping[str, str] = field(default_factory=dict)

    @property
    def rests_on(self) -> dict[str, str]:
        """Return the verdict that each claim must have, by the claim's name."""
        needed = {"holds": self.holds, "fails": self.fails, "undecided": self.undecided}
        return {c: verdict for verdict, claims in needed.items() for c in claims} | {**self.when}

    def said(self, tables: Tables, verdicts: Mapping[str, str]) -> str:
        """Return the sentence, or an empty text if it must not be shown.

        It is not shown if a claim has another verdict than required, or if rows are absent.
        verdicts: the verdict of each claim by name.
        """
        if any(verdicts.get(claim) != needed for claim, needed in self.rests_on.items()):
            return ""
        try:
            return self.says(Present(tables))
        except NoRows:
            return ""


@dataclass(frozen=True)
class Header:
    """The two lines of text above a picture: what it is, and what was found."""

    what: str
    """Paper, figure, data, whose procedure, number of replicates, and what the marks are."""
    finding: str
    """The sentence of a `Finding`. Without one, what the picture shows."""

    def as_json(self) -> bytes:
        """Return the two lines as JSON, the content of `<figure>.header.json`."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False).encode()


@dataclass(frozen=True)
class Drawing:
    """How a figure is drawn, with the parts of its header and caption.

    - figure: the figure's name.
    - draw: the function that makes the picture from the tables.
    - caption: the description of panels, points, lines, bars and bands, or a function of the tables
      that returns it.
    - whose: whose training procedure is shown: "as in the paper" or "ours".
    - findings: sentences for the header, which shows the first one whose claims have the required
      verdicts.
    - marks: what lines and dots are, for a picture without a legend for them: "lines: medians,
      dots: replicates".
    - shows: the values that are drawn, by column; the caption lists all other values as not shown.
    - selects: a function that returns the drawn rows of the tables, for a choice that `shows`
      cannot express. Header and caption name only the data and sizes of drawn rows.
    - unread: tables that neither the drawing nor a claim reads. The reference does not store them.
    """

    figure: str
    draw: Draw
    caption: Caption
    whose: str = ""
    findings: Sequence[Finding] = ()
    marks: str = ""
    shows: Shows = field(default_factory=dict)
    selects: Callable[[Tables], Tables] = Present
    unread: Sequence[str] = ()

    def __call__(self, tables: Tables) -> tuple[MplFigure, pd.DataFrame]:
        """Draw the tables; return the picture and a table of the drawn numbers.

        Only the rows that `shown` returns are drawn.
        """
        return self.draw(self.shown(tables))

    def header(
        self,
        title: str,
        tables: Tables,
        judged: pd.DataFrame,
        scale: str = "",
        overrides: Sequence[str] = (),
    ) -> Header:
        """Return the header of the picture.

        - title: a text such as "paper B, figure 1: ranks by depth";
        - tables: the tables that are drawn;
        - judged: the judged claims, a result of `claims.judge`;
        - scale: the scale of the runs; at `smoke` the header has no finding;
        - overrides: the parameters `key=value` that the user typed.
        """
        source, _, drawn = title.partition(": ")
        verdicts = dict(zip(judged["claim"], judged["verdict"], strict=True))
        sentences = (finding.said(tables, verdicts) for finding in self.findings)
        finding = next(filter(None, sentences), "") if judges(scale) else ""
        changed = f"with {', '.join(overrides)}" if overrides else ""
        shown = self.shown(tables)
        what = (source, dataset_in(shown), self.whose, changed, repeated(shown), self.marks)
        line = DOT.join(filter(None, what))
        return Header(upper(line), upper(finding or drawn or source))

    def description(self, tables: Tables, study: str) -> str:
        """Return the description of panels and marks, followed by the values that are not drawn.

        study: the name of the figure's study, whose `names.py` has the printed names.
        """
        caption = self.caption
        words = caption if isinstance(caption, str) else caption(self.shown(tables))
        names, drawn = self._names(tables), self._names(self.shown(tables))
        absent = {column: names[column] - drawn[column] for column in names}
        left_out = "; ".join(
            _listed(column, some, study) for column, some in absent.items() if some
        )
        return f"{words} Not shown: {left_out}." if left_out else words

    def left_out(self, names: Mapping[str, Iterable[str]]) -> str:
        """Return as text which of these values the drawing leaves out; empty if it draws all.

        names: the values of each column.
        """
        absent = {
            column: sorted(value for value in values if value not in self.shows[column])
            for column, values in names.items()
        }
        return "; ".join(f"{column} {', '.join(some)}" for column, some in absent.items() if some)

    def _names(self, tables: Tables) -> dict[str, set[str]]:
        """Return the values in some tables of each column in `shows`."""
        names: dict[str, set[str]] = {column: set() for column in self.shows}
        for rows in tables.values():
            for column in {*names} & {*rows}:
                names[column] |= {*rows[column].dropna().unique()}
        return names

    def shown(self, tables: Tables) -> Tables:
        """Return the tables with only the rows that are drawn, by `shows` and `selects`."""
        shown = {}
        for table, rows in tables.items():
            for column in set(self.shows) & set(rows):
                drawn = [value for value in rows[column].unique() if value in self.shows[column]]
                rows = rows[rows[column].isin(drawn)]
            shown[table] = rows
        return Present(self.selects(Present(shown)))


def _listed(column: str, values: Iterable[str], study: str) -> str:
    """Return values of a column with their printed names, such as "data Fashion-MNIST".

    The column's name is omitted if all names of values begin with it, as "Theorem 3" does.
    study: the study whose printed names are written.
    """
    names = names_of(study)
    named, texts = names.column(column), [names.value(column, value) for value in sorted(values)]
    repeats = all(text.lower().startswith(f"{named} ") for text in texts)
    return (f"{named} " if not repeats else "") + ", ".join(texts)


def counted(judged: pd.DataFrame) -> str:
    """Return how many claims have each verdict: `claims: 3 hold, 1 fails; additional: 1 holds`.

    Claims of the paper, additional claims and loose bounds are counted apart. Without claims the
    text is empty. judged: the result of `claims.judge`.
    """
    parts = []
    for kind, label in KINDS.items():
        counts = judged.loc[judged["kind"] == kind, "verdict"].value_counts()
        words = [
            f"{count} {verdict if count == 1 else plural}"
            for verdict, (_, plural, _) in MARKS.items()
            if (count := counts.get(verdict, 0))
        ]
        if words:
            parts.append(label + ", ".join(words))
    return "; ".join(parts)


def drawing_of(name: str, study: str) -> Drawing:
    """Return the drawing of a figure.

    name: the figure's name. study: the name of its study. Raises InputError if FIGURES in the
    study's `figures.py` does not list the figure.
    """
    listed = {each.figure: each for each in getattr(part_of(study, "figures"), "FIGURES", [])}
    if name in listed:
        return listed[name]
    path = f"{package_of(study).replace('.', '/')}/figures.py"
    text = f"figure={name} has no drawing: FIGURES of {path} does not list it"
    if listed and package_of(study).startswith("runner."):  # the user has a YAML file alone
        other = min(listed)
        text += (
            f".\nA drawing of your own needs a study of your own: runner new study NAME."
            f" For other parameters in a figure of {study}, write them into experiment/NAME.yaml:"
            f" {command(f'figure={other}', 'experiment=NAME')}"
        )
    raise InputError(text)


def draw(drawing: Draw, tables: Tables) -> tuple[MplFigure, pd.DataFrame]:
    """Return the picture and the table of the drawn numbers.

    If rows are absent, the picture is one empty panel, with a text about the absent rows. To leave
    only one panel of several empty, a drawing uses `with or_empty(axes)`.
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

    others: further axes, which are then hidden.
    """
    try:
        yield
    except NoRows as absent:
        _leave_empty(axes, absent)
        for other in others:
            other.set_axis_off()


def _leave_empty(axes: Axes, absent: NoRows) -> None:
    """Write into an empty panel which rows are absent, in lines that fit into the panel."""
    middle: Any = {"ha": "center", "va": "center", "transform": axes.transAxes}
    inches = axes.get_window_extent().width / axes.figure.dpi
    words = fill(" ".join(str(absent).split()), max(8, int(inches / 0.085)))
    axes.text(0.5, 0.5, words, color="grey", fontsize=SMALL, **middle)
