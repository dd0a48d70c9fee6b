"""Overridden figures and diverged runs: claims and drawings over cut copies of the kept tables.

Nothing is computed. An override leaves some values of a parameter; a claim or a panel that lacks
its rows says so. For each figure a sample of the cuts, always the same one.
"""

import warnings
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from math import inf, nan
from random import Random

import matplotlib
import pandas as pd
import pytest
from matplotlib.figure import Figure
from repository import REPOSITORY

from runner.core.catalogue import configs, figure_study, rows_of
from runner.publish.kept_figure import read_tables
from runner.results.captions import caption
from runner.results.claims import claims_of, judge
from runner.results.drawing import draw, drawing_of
from runner.results.preview import overview_of
from runner.results.rows import Present
from runner.results.style import SCREEN

KEPT = REPOSITORY / "outputs" / "reference" / "quick"
FIGURES = sorted(path.parent.name for path in KEPT.glob("*/claims.csv"))
SAMPLED = 3

CRASHED = {
    "rank-fig1": {"normalization": ["batch"]},
    "rank-fig4": {"method": ["batch_norm"]},
    "rank-fig10": {"method": ["vanilla"]},
    "bottleneck-fig1": {"depth": [4]},
}
"""Cuts that once ended in an exception, always in the sample."""

COUNTED = ("epoch", "layer", "replicate", "time")
"""Columns of which a parameter leaves the first values."""

MANY = 6
"""Values of a column of which the first, the middle and the last are tried."""

TableSet = dict[str, pd.DataFrame]
Cut = dict[str, list]
"""The values that are left of some columns."""


@cache
def kept(figure: str) -> TableSet:
    """The kept tables as far as five replicates, which can decide, and eight epochs make them."""
    tables = read_tables(KEPT / figure)
    for column, last in {"replicate": 4, "epoch": 8}.items():
        tables = {
            name: rows[rows[column] <= last] if column in rows else rows
            for name, rows in tables.items()
        }
    return tables


def after(cut: Cut, tables: TableSet) -> TableSet:
    """The rows with the values that are left; tables without the column as they are."""
    for column, values in cut.items():
        tables = {
            name: rows[rows[column].isin(values)].reset_index(drop=True) if column in rows else rows
            for name, rows in tables.items()
        }
    return tables


def values_of_parameters(study: str, tables: TableSet) -> Cut:
    """All values of each column that is a parameter, or an element of one, and of replicates."""
    parameters = {field.name for field in fields(configs()[study])}
    found: dict[str, set] = {}
    for name, rows in tables.items():
        row_class = rows_of(study)[name]
        measured = {field.name for field in fields(row_class)} - set(row_class.keys)
        for column in set(rows) - measured:
            if {column, f"{column}s"} & parameters:
                found.setdefault(column, set()).update(rows[column].dropna())
    return {column: sorted(values) for column, values in sorted(found.items()) if len(values) > 1}


def cuts(study: str, tables: TableSet) -> Iterator[Cut]:
    """Each value of each parameter alone, and without each; the first of what is counted."""
    for column, values in values_of_parameters(study, tables).items():
        if column in COUNTED:
            yield {column: values[: 1 if column == "replicate" else 2]}
            continue
        for value in values if len(values) <= MANY else values[:: (len(values) - 1) // 2]:
            yield {column: [value]}
            yield {column: [other for other in values if other != value]}


def sample(figure: str, tables: TableSet, count: int) -> Iterator[tuple[str, TableSet]]:
    """So many cuts, the last of them two at once."""
    study = figure_study(figure)
    chance = Random(figure)
    singles = list(cuts(study, tables))
    chosen = chance.sample(singles, min(count, len(singles)))
    always = [CRASHED[figure]] if figure in CRASHED else []
    for cut in [*always, *chosen[1 + len(always) :], chosen[0] | chance.choice(singles)]:
        yield str(cut), after(cut, tables)


def diverged(study: str, tables: TableSet, number: float, late: bool) -> TableSet:
    """All measured numbers replaced, or those of the later half of training."""
    filled = {}
    for name, rows in tables.items():
        row_class = rows_of(study)[name]
        numbers = [
            field.name
            for field in fields(row_class)
            if field.type is float and field.name not in row_class.keys and field.name in rows
        ]
        steps = [column for column in ("epoch", "time", "samples", "width") if column in rows]
        chosen = rows[steps[0]] > rows[steps[0]].median() if late and steps else rows.index >= 0
        filled[name] = rows.copy()
        filled[name].loc[chosen, numbers] = number
    return filled


def require_words(figure: str, left: TableSet) -> pd.DataFrame:
    """Judge all claims; one that has no rows is undecided and says so."""
    claims = claims_of(figure, figure_study(figure))
    with warnings.catch_warnings(action="error"):
        judged = judge(figure, claims, left)
    assert list(judged["claim"]) == [claim.name for claim in claims]
    lacking = judged[judged["n"] == 0]
    assert set(lacking["verdict"]) <= {"undecided"}
    assert lacking["note"].str.contains(r"[a-z]+ [a-z]+.*[^: ]$").all()
    assert not judged["note"].str.contains(r"\bnan\b").any()
    return judged


def require_picture(drawing, left: TableSet, rendered: bool = False) -> Figure:
    """One figure and its numbers, without a warning."""
    small = SCREEN | {"figure.dpi": 20}
    with warnings.catch_warnings(action="error"), matplotlib.rc_context(small):
        picture, drawn = draw(drawing, left)
        assert isinstance(drawn, pd.DataFrame)
        if rendered:
            picture.draw_without_rendering()
        return picture


@pytest.mark.parametrize("figure", FIGURES)
def test_an_overridden_figure_says_what_is_absent(figure):
    for cut, left in sample(figure, kept(figure), SAMPLED):
        print(cut)
        require_words(figure, left)
        picture = require_picture(drawing_of(figure, figure_study(figure)), left)
        assert all(axes.has_data() or axes.texts or not axes.axison for axes in picture.axes)


@pytest.mark.parametrize("figure", FIGURES)
def test_without_rows_nothing_is_decided_and_the_picture_says_so(figure):
    for left in ({}, {name: rows.iloc[:0] for name, rows in kept(figure).items()}):
        assert set(require_words(figure, left)["verdict"]) <= {"undecided"}
        picture = require_picture(drawing_of(figure, figure_study(figure)), left, rendered=not left)
        assert any("no rows" in text.get_text() for text in picture.axes[0].texts)


def figure_of(study: str) -> str:
    """The first figure of a study."""
    return next(name for name in FIGURES if figure_study(name) == study)


@pytest.mark.parametrize(("number", "late"), [(nan, False), (inf, True)])
@pytest.mark.parametrize("study", sorted(configs()))
def test_a_figure_of_diverged_runs_is_judged_and_drawn(study, number, late):
    figure = figure_of(study)
    left = diverged(study, kept(figure), number, late)
    require_words(figure, left)
    require_picture(drawing_of(figure, study), left)


@pytest.mark.parametrize("study", sorted(configs()))
def test_a_preview_says_what_is_absent(study):
    figure = figure_of(study)
    tables = kept(figure)
    run = {name: rows[rows["run"].isin(rows["run"].iloc[:1])] for name, rows in tables.items()}
    for cut, left in sample(figure, run, 2):
        print(cut)
        require_picture(overview_of(study), left)


UNKNOWN = "unheard of"


def with_another(column: str, tables: TableSet) -> TableSet:
    """The rows of the first name once more, under a name that no drawing knows."""
    first = next(rows[column].iloc[0] for rows in Present(tables).values() if column in rows)
    found = {}
    for name, rows in tables.items():
        if column in rows:
            more = rows[rows[column] == first]
            more = more.assign(**{column: UNKNOWN, "run": more["run"] + UNKNOWN})
            rows = pd.concat([rows, more], ignore_index=True)
        found[name] = rows
    return found


@pytest.mark.parametrize("figure", FIGURES)
def test_what_a_drawing_does_not_know_is_named_in_the_caption(figure):
    """No row is left out without a word, and none ends the drawing."""
    study = figure_study(figure)
    drawing = drawing_of(figure, study)
    for column in drawing.shows:
        tables = with_another(column, kept(figure))
        require_picture(drawing, tables)
        words = caption(figure, drawing.said, study, tables)
        assert f"{column}" in words and UNKNOWN in " ".join(words.split())


def test_what_a_figure_will_not_draw_is_said_before_it_is_computed(command):
    words = ("figure=rank-fig2", "scale=smoke", "normalizations=[batch,batch_no_mean]")
    done = command(*words)
    assert done.returncode == 0, done.stderr
    told = "rank-fig2 does not draw normalization batch_no_mean"
    assert told in done.stderr and done.stderr.index(told) < done.stderr.index("complete")
