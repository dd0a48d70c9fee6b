"""What a user reads does not depend on the last digits of decompositions, or of stored numbers."""

import ast
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path

import matplotlib
import pandas as pd
import pytest
import torch
from repository import REPOSITORY
from rounding import blurred_tables, other_rounding
from samples import samples

import runner
from runner.commands.kept import KeptFigure, kept_folders
from runner.core.catalogue import figure_names, figure_study, paper_folder, rows_of
from runner.core.settings import Settings
from runner.results.figure import Figure
from runner.results.rows import Tables
from runner.runs.execution import execute

KEPT = kept_folders(REPOSITORY / "outputs" / "reference")
QUICK = [folder for folder in KEPT if folder.parent.name == "quick"]

LONG = {
    *("invariances", "symmetry", "practical_layers", "norm_finetuning", "breaking_bn"),
    *(
        "constructions",
        "bottleneck-fig2",
        "rank-assumptions",
        "rank-fig1",
        "rank-fig4",
        "rank-fig6",
    ),
}
"""Studies and figures that take long: they are in `make test-more` alone."""

TIED = {("paper", "rank-fig1")}
"""Ties of fractions: rounding chooses the point that is printed as the closest one, or the last
printed digit of a limit, but no verdict."""

DUST = re.compile(r"-?\d(\.\d+)?e-(1[0-9]|2\d)")
"""What rounding leaves of zero."""

IN_UNITS_OF_ROUNDING = re.compile(r"(?<=: at most )\S+(?=[\w ]* \(bound: at most [13];)")
"""Rounding errors, divided by their bound."""


def paper_of(figure: str) -> str:
    """Return the paper of a figure. `make test` has a figure of each."""
    return paper_folder(figure_study(figure))


def without_dust(text: object) -> str:
    return IN_UNITS_OF_ROUNDING.sub("0", DUST.sub("0", str(text)))


def read(figure: Figure, tables: Tables) -> dict[str, object]:
    """All that is written about a figure: verdicts, header, caption."""
    judged = figure.judge(tables)
    header = figure.header(tables, judged)
    words = [*judged["measured"], *judged["note"]]
    return {
        "verdicts": [*judged["claim"], *judged["verdict"]],
        "measured": [without_dust(word) for word in words],
        "header": replace(header, finding=without_dust(header.finding)),
        "caption": without_dust(figure.caption(tables)),
    }


def named(rows: pd.DataFrame) -> dict[str, object]:
    """Of a table all but its floats: columns, texts, whole numbers, what is missing, in order."""
    floats = rows.select_dtypes("float")
    others = rows.drop(columns=floats.columns).astype(object)
    return {
        "columns": [*rows],
        "rows": others.where(others.notna(), None).to_dict("list"),
        "missing": floats.isna().to_dict("list"),
    }


def measured(study: str) -> dict[str, set[str]]:
    """The columns of each table that are no keys."""
    return {
        name: {field.name for field in fields(row)} - {*row.keys}
        for name, row in rows_of(study).items()
    }


def require_equal(one: dict, other: dict) -> None:
    for name in one:
        assert one[name] == other[name], name


def test_decompositions_have_noise_and_are_decompositions():
    A = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = torch.linalg.svd(A, full_matrices=False)
    with other_rounding(seed=1):
        U, s, Vh = torch.linalg.svd(A, full_matrices=False)
    assert not torch.equal(s, exact.S) and not torch.equal(U.sign(), exact.U.sign())
    torch.testing.assert_close(U @ torch.diag(s) @ Vh, A, rtol=0, atol=1e-12)
    assert torch.equal(torch.linalg.svdvals(A), torch.linalg.svdvals(A))


@pytest.mark.parametrize(
    "folder",
    samples(
        KEPT,
        lambda folder: (
            paper_of(folder.name) if folder in QUICK and folder.name not in LONG else None
        ),
        lambda folder: f"{folder.parent.name}-{folder.name}",
    ),
)
def test_texts_and_verdicts_from_stored_tables(folder):
    figure = KeptFigure.of(folder)
    tables = figure.tables()
    of_numbers = read(figure, tables)
    with other_rounding(seed=2):
        require_equal(of_numbers, read(figure, tables))
    blurred = read(figure, blurred_tables(tables, measured(figure.study), seed=3))
    if (folder.parent.name, folder.name) in TIED:
        assert blurred.pop("measured") != of_numbers.pop("measured"), "no longer an exception"
    require_equal(of_numbers, blurred)


@pytest.mark.more
@pytest.mark.parametrize("folder", QUICK, ids=lambda folder: folder.name)
def test_names_and_order_of_what_is_drawn_from_stored_tables(folder):
    figure = KeptFigure.of(folder)
    tables = figure.tables()
    drawn = named(figure.numbers(tables))
    blurred = blurred_tables(tables, measured(figure.study), seed=3)
    with other_rounding(seed=2):
        require_equal(drawn, named(figure.numbers(blurred)))


@pytest.mark.parametrize(
    "name",
    samples(
        figure_names(),
        lambda name: None if {name, figure_study(name)} & LONG else paper_of(name),
    ),
)
def test_figures_at_scale_smoke(name, tmp_path):
    """The rows are the same, with the same names, counts and ranks, and so are the texts."""
    before, after = (
        runner.figure(name, scale="smoke", outputs=str(tmp_path / each))
        for each in ("before", "after")
    )
    plain = computed(before)
    with other_rounding(seed=4):
        noisy = computed(after)
        for table, rows in plain.items():
            require_equal(named(rows), named(noisy[table]))
        require_equal(read(before, plain), read(after, noisy))


def computed(figure: Figure) -> Tables:
    for run in figure.runs:
        execute(run, Settings(outputs=str(figure.outputs), device="cpu"))
    return figure.tables()


NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize(
    "path",
    samples(NOTEBOOKS, lambda path: path.stem == "norm_tuning" or None, lambda path: path.stem),
)
def test_what_the_notebooks_print(path, tmp_path, monkeypatch):
    matplotlib.use("agg")
    monkeypatch.setenv("SCALE", "smoke")
    monkeypatch.setenv("OUTPUTS", str(tmp_path / "before"))
    before = [*printed(path)]
    monkeypatch.setenv("OUTPUTS", str(tmp_path / "after"))
    with other_rounding(seed=5):
        after = [*printed(path)]
    assert len(before) > 5 and before == after


def printed(path: Path) -> Iterator[str]:
    """What each cell of a notebook prints and shows, without what rounding leaves of zero."""
    space: dict[str, object] = {"display": lambda value: print(as_text(value))}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            body = ast.parse("".join(cell["source"])).body
            last = body.pop() if isinstance(body[-1], ast.Expr) else ast.parse("None").body[0]
            with redirect_stdout(StringIO()) as out:
                exec(compile(ast.Module(body, []), str(path), "exec"), space)
                value = eval(compile(ast.Expression(last.value), str(path), "eval"), space)
                space["display"](value)
            yield re.sub(" +", " ", without_dust(out.getvalue()))  # a column is as wide as its text


def as_text(value: object) -> str:
    is_text = isinstance(value, str | pd.DataFrame | pd.Series)
    return value.to_string() if isinstance(value, pd.DataFrame) else str(value) * is_text
