"""One's own results against the reference: what the command says, and of what."""

import pandas as pd
import pytest
from reference import keep

from runner.commands import compare
from runner.compose.orders import paper_figure
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.runs.execution import execute

NAME = "bottleneck-example20"
"""Of the canonical figures the soonest made; its table has no replicates."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The overrides of the figure, which is made."""
    folder = tmp_path_factory.mktemp("made")
    typed = ["scale=smoke", f"outputs={folder}"]
    variant = paper_figure(NAME, typed)
    for run in variant.runs:
        execute(run, Settings(outputs=str(folder), device="cpu"))
    variant.make()
    return typed


@pytest.fixture
def compared(made, tmp_path, monkeypatch, capsys):
    """Keeps the figure, changes what was kept; then the command: exit code and stdout."""
    reference = tmp_path / "reference"
    monkeypatch.setattr(compare, "REFERENCE", reference)
    monkeypatch.setattr(compare, "figure_names", lambda: [NAME, "bottleneck-linear", "rank-fig6"])

    def command(change=lambda rows: rows, file="metrics") -> tuple[int, str]:
        path = keep(NAME, made, reference) / f"{file}.csv"
        change(pd.read_csv(path)).to_csv(path, index=False)
        (reference / "smoke" / "bottleneck-linear").mkdir(exist_ok=True)
        capsys.readouterr()
        return compare.main(made), capsys.readouterr().out

    return command


def shifted(by):
    return lambda rows: rows.assign(max_error=rows["max_error"] + by)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda rows: rows, 0, "equal to the reference\n"),
        (
            lambda rows: rows.assign(epsilon=rows["epsilon"] * (1 + 1e-12)),
            0,
            "equal up to rounding to the reference\n",
        ),
        (shifted(1e-16), 0, "as the reference, up to chance (most: 0."),
        (shifted(1e-13), 1, "1 columns differ"),  # rounding errors a hundred times as large
        (shifted(1e-3), 1, "1 columns differ by more than chance\n"),
        (lambda rows: pd.concat([rows, rows.tail(1)]), 1, "1 columns differ"),
        (lambda rows: rows.iloc[1:], 1, "1 columns differ"),
    ],
)
def test_the_command_says_how_alike_the_numbers_are(compared, change, code, words):
    found, said = compared(change)
    assert found == code and f"{NAME}: {words}" in said
    assert code == 0 or "max_error" in said or "(rows)" in said


def test_what_is_not_made_or_not_kept_is_listed_and_differs_in_nothing(compared):
    code, said = compared()
    assert code == 0
    assert "not made at scale smoke: bottleneck-linear\n" in said
    assert "not in the reference at scale smoke: rank-fig6\n" in said


def test_columns_of_rounding_errors_are_named_and_compared_by_their_size(compared):
    code, said = compared(lambda rows: rows.assign(max_error=rows["max_error"] * 3))
    assert code == 0
    assert "note: rounding errors, compared by their size alone: metrics.max_error\n" in said
    code, said = compared(lambda rows: rows.assign(max_error=rows["max_error"] / 2000))
    assert code == 1 and "all rows: 2e+03 times the size" in said


def test_a_column_that_the_reference_lacks_is_named(compared):
    """An old reference is compared as far as it goes."""
    code, said = compared(lambda rows: rows.drop(columns="max_error"))
    assert code == 0
    assert "note: on one side alone, and not compared: metrics.max_error\n" in said
    assert f"{NAME}: equal to the reference" in said
    code, said = compared(lambda rows: rows.drop(columns="depth"))
    assert code == 0 and "metrics.depth" in said and f"{NAME}: nothing to compare" in said


def test_runs_of_other_settings_are_counted_and_their_rows_are_not(compared):
    code, said = compared(lambda rows: rows.assign(run=rows["run"] + "-before"))
    assert code == 1 and f"{NAME}: 2 runs on one side alone\n" in said
    assert "columns" not in said and "-before: kept alone" in said


def test_another_verdict_is_named(compared):
    code, said = compared(lambda claims: claims.assign(verdict="fails"), "claims")
    assert code == 1 and "verdicts differ" in said and "holds and fails" in said


def test_another_seed_is_compared_by_its_distribution(tmp_path, capsys):
    """With the figure that the reference has at scale quick."""
    name, typed = "rank-fig3b", [f"outputs={tmp_path}", "seed=9"]
    assert compare.main([name, *typed]) == 0
    assert f"not made at scale quick: {name}" in capsys.readouterr().out
    for run in paper_figure(name, typed).runs:
        execute(run, Settings(outputs=str(tmp_path), device="cpu"))
    assert compare.main([name, "rank-fig12", *typed]) == 0, "figure 12 has no scale quick"
    said = capsys.readouterr().out
    assert "not in the reference at scale quick: rank-fig12\n" in said
    assert f"{name} with seed=9: both seeds can be from the same distribution (perm" in said
    with pytest.raises(InputError, match="omit chains=5"):
        compare.main([name, *typed[:1], "chains=5"])


def test_figures_without_replicates_have_no_distribution_to_compare(made, tmp_path, capsys):
    keep(NAME, made, tmp_path)
    figure = paper_figure(NAME, [*made, "seed=9"])
    for run in figure.runs:
        execute(run, Settings(outputs=str(figure.outputs), device="cpu"))
    text, differs = compare.compare_seeds(figure, tmp_path)
    assert (text, differs) == ("needs 4 replicates for each seed: not compared", False)
