"""Overridden figures and diverged runs: claims and drawings over cut copies of the kept tables.

Nothing is computed. An override leaves some values of a parameter; a claim or a panel that lacks
its rows says so. For each figure a sample of the cuts, always the same one: one cut of a figure of
each study in `make test`, all others in `make test-more`.
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
from in_process import order_of
from matplotlib.figure import Figure
from repository import REPOSITORY
from samples import samples

from runner.commands.kept import KeptFigure
from runner.compose.orders import paper_figure
from runner.core.catalogue import configs, figure_study, paper_folder, rows_of
from runner.core.choices import Datasets
from runner.results.claims import claims_of, judge
from runner.results.drawing import draw, drawing_of
from runner.results.formats import SCREEN
from runner.results.preview import overview_of
from runner.results.rows import Present

KEPT = REPOSITORY / "outputs" / "reference" / "quick"
FIGURES = sorted(path.parent.name for path in KEPT.glob("*/claims.csv"))
FIGURE_OF = {figure_study(name): name for name in reversed(FIGURES)}
"""The first figure of each study."""

CRASHED = {
    "rank-fig1": {"normalization": ["batch"]},
    "rank-fig4": {"method": ["batch_norm"]},
    "rank-fig10": {"method": ["vanilla"]},
    "bottleneck-fig1": {"depth": [4]},
}
"""Cuts that once ended in an exception, always in the sample."""

OWN_DATA = {"rank-norms": "two data sets", "low-rank-training": "listed", "rank-fig1": "one"}
"""Figures with own images, of which the first of a kind is in the sample."""

COUNTED = ("epoch", "layer", "replicate", "time")
"""Columns of which a parameter leaves the first values."""

UNKNOWN = "unheard of"

TableSet = dict[str, pd.DataFrame]
Cut = dict[str, list]
"""The values that are left of some columns."""


@cache
def kept(figure: str) -> TableSet:
    """The kept tables as far as five replicates, which can decide, and eight epochs make them."""
    tables = KeptFigure.of(KEPT / figure).tables()
    for column, last in {"replicate": 4, "epoch": 8}.items():
        tables = after({column: range(last + 1)}, tables)
    return tables


def after(cut: Cut, tables: TableSet) -> TableSet:
    """The rows with the values that are left; tables without the column as they are."""
    for column, values in cut.items():
        tables = {
            name: rows[rows[column].isin(values)].reset_index(drop=True) if column in rows else rows
            for name, rows in tables.items()
        }
    return tables


def cuts(figure: str, tables: TableSet, more: bool = False) -> Iterator[TableSet]:
    """One value of a parameter alone; more: and another parameter without one of its values."""
    study, chance = figure_study(figure), Random(figure)
    parameters = {field.name for field in fields(configs()[study])} | {"replicate", "epoch"}
    values: dict[str, set] = {}
    for name, rows in tables.items():
        row_class = rows_of(study)[name]
        measured = {field.name for field in fields(row_class)} - set(row_class.keys)
        for column in set(rows) - measured:
            if {column, f"{column}s"} & parameters:
                values.setdefault(column, set()).update(rows[column].dropna())
    several = {column: sorted(values[column]) for column in values if len(values[column]) > 1}
    one, other = chance.choices(sorted(several), k=2)
    alone = {one: several[one][:2] if one in COUNTED else [chance.choice(several[one])]}
    both = alone | {other: several[other][:1] if other in COUNTED else several[other][1:]}
    for cut in [both] if more else [alone, *filter(None, [CRASHED.get(figure)])]:
        print(cut)
        yield after(cut, tables)


def diverged(study: str, tables: TableSet, number: float, late: bool) -> TableSet:
    """All measured numbers replaced, or those of the later half of training."""
    filled = {}
    for name, rows in tables.items():
        row_class = rows_of(study)[name]
        floats = {field.name for field in fields(row_class) if field.type is float}
        numbers = sorted((floats - set(row_class.keys)) & set(rows))
        steps = [column for column in ("epoch", "time", "samples", "width") if column in rows]
        chosen = rows[steps[0]] > rows[steps[0]].median() if late and steps else rows.index >= 0
        filled[name] = rows.copy()
        filled[name].loc[chosen, numbers] = number
    return filled


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


def require_picture(drawing, left: TableSet) -> Figure:
    """One figure and its numbers, without a warning."""
    small = SCREEN | {"figure.dpi": 20}
    with warnings.catch_warnings(action="error"), matplotlib.rc_context(small):
        picture, drawn = draw(drawing, left)
        assert isinstance(drawn, pd.DataFrame)
        return picture


@pytest.mark.parametrize(
    "name", samples(FIGURES, lambda name: name if name in CRASHED else figure_study(name))
)
def test_an_overridden_figure_says_what_is_absent(name):
    for left in cuts(name, kept(name)):
        require_all_panels(name, left)


@pytest.mark.parametrize("name", samples(FIGURES, figure_study))
def test_a_figure_without_rows_says_so_and_names_what_it_does_not_draw(name):
    """No row is left out without a word, and none ends the drawing."""
    drawing, tables = drawing_of(name, figure_study(name)), kept(name)
    for left in ({}, {table: rows.iloc[:0] for table, rows in tables.items()}):
        assert set(require_words(name, left)["verdict"]) <= {"undecided"}
    picture = require_picture(drawing, left)
    assert any("no rows" in text.get_text() for text in picture.axes[0].texts)
    for column in [*drawing.shows][:1]:
        require_unknown_name(name, column)


OF_IMAGES = [
    name
    for name in FIGURES
    for field in fields(configs()[figure_study(name)])
    if isinstance(field.metadata.get("choices"), Datasets)
]


@pytest.mark.parametrize("name", samples(OF_IMAGES, lambda name: OWN_DATA.get(name)))
def test_a_figure_of_own_images_has_all_rows_and_verdicts(name):
    tables, drawing = kept(name), drawing_of(name, figure_study(name))
    own = {
        table: rows.assign(data="mine.npz") if "data" in rows else rows
        for table, rows in tables.items()
    }
    before, after = (judge(name, claims_of(name, figure_study(name)), t) for t in (tables, own))
    same = ["verdict", "measured", "n", "point"]
    pd.testing.assert_frame_equal(before[same], after[same])
    assert {*drawing.shown(own)} == {*drawing.shown(tables)}
    for table, rows in drawing.shown(tables).items():
        assert len(drawing.shown(own)[table]) == len(rows)
    assert not any("no rows" in text.get_text() for text in require_picture(drawing, own).texts)


@pytest.mark.more
@pytest.mark.parametrize("name", FIGURES)
def test_more_cuts_and_columns_of_a_figure(name):
    for left in cuts(name, kept(name), more=True):
        require_all_panels(name, left)
    for column in [*drawing_of(name, figure_study(name)).shows][1:]:
        require_unknown_name(name, column)


def require_all_panels(name: str, left: TableSet) -> None:
    """Words for each claim, and data or words in each panel."""
    require_words(name, left)
    picture = require_picture(drawing_of(name, figure_study(name)), left)
    assert all(axes.has_data() or axes.texts or not axes.axison for axes in picture.axes)


def require_unknown_name(name: str, column: str) -> None:
    """The caption says which value of the column is not drawn."""
    more = with_another(column, kept(name))
    require_picture(drawing_of(name, figure_study(name)), more)
    words = " ".join(KeptFigure.of(KEPT / name).caption(more).split())
    assert column in words and UNKNOWN in words


DIVERGED = [
    (study, *how)
    for number, study in enumerate(sorted(configs()))
    for how in [(nan, False), (inf, True)][:: 1 - 2 * (number % 2)]
]
"""All numbers of a study, or those of the end; first the one or the other."""


@pytest.mark.parametrize(
    ("study", "number", "late"),
    samples(DIVERGED, lambda study, number, late: (paper_folder(study), late)),
)
def test_figures_of_diverged_runs_are_drawn(study, number, late):
    name = FIGURE_OF[study]
    left = diverged(study, kept(name), number, late)
    require_words(name, left)
    require_picture(drawing_of(name, study), left)


@pytest.mark.parametrize("study", samples(sorted(configs()), paper_folder))
def test_previews_of_runs_with_cuts_are_drawn(study):
    tables = kept(FIGURE_OF[study])
    run = {table: rows[rows["run"].isin(rows["run"].iloc[:1])] for table, rows in tables.items()}
    for more in (False, True):
        for left in cuts(FIGURE_OF[study], run, more):
            require_picture(overview_of(study, run), left)


def test_what_a_figure_never_draws_is_no_news():
    figures = [paper_figure("rank-fig2", ["scale=smoke", *more]) for more in ([], ["depth=60"])]
    assert [each.not_drawn() for each in figures] == ["", ""], "the figure's own runs have it"


def test_what_a_figure_will_not_draw_is_said_before_it_is_computed(command):
    words = ("figure=rank-fig2", "scale=smoke", "normalizations=[batch,batch_no_mean]")
    done = command(*words)
    assert done.returncode == 0, done.stderr
    told = "rank-fig2 does not draw normalization batch_no_mean: only the tables of its runs"
    assert told in done.stderr and done.stderr.index(told) < done.stderr.index("2 runs")
    (untyped,) = order_of("figure=rank-fig2", "scale=smoke", "data=digits").figures
    assert not untyped.not_drawn(), "the user did not ask for batch_no_mean"
