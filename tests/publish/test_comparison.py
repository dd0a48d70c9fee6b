"""One's own results against the reference: chance, rounding, and what is not there."""

from dataclasses import dataclass, make_dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from runner.cli.orders import paper_figure
from runner.core.catalogue import rows_of
from runner.core.settings import Settings
from runner.core.studies import Row
from runner.publish import comparison
from runner.publish.comparison import compare_tables
from runner.publish.reference import keep
from runner.results.figures import make
from runner.runs.execution import execute


@dataclass(frozen=True)
class Metrics(Row):
    """Loss by width; the rank has an error of its own."""

    keys: ClassVar[tuple[str, ...]] = ("width", "replicate")

    width: int
    replicate: int
    loss: float
    rank: float
    rank_se: float


def table(shift=0.0, seed=0, **changes):
    """Three widths, eight replicates; the loss has standard deviation 1, the rank error 0.1."""
    noise = np.random.default_rng(seed)
    rows = [
        {
            "run": f"width={width}-hash",
            "width": width,
            "replicate": replicate,
            "loss": 10 * width + noise.normal() + (shift if width == 2 else 0),
            "rank": 3.0,
            "rank_se": 0.1,
        }
        for width in (1, 2, 3)
        for replicate in range(8)
    ]
    return pd.DataFrame(rows).assign(**changes)


def test_equal_and_chance_are_not_reported():
    assert compare_tables(table(), table(), Metrics).empty
    assert compare_tables(table(seed=1), table(seed=2), Metrics).empty


def test_a_shifted_mean_is_named_with_its_place():
    found = compare_tables(table(shift=5.0, seed=1), table(seed=2), Metrics)
    assert list(found["key"]) == ["2"] and list(found["column"]) == ["loss"]
    assert found["deviation"].item() > 5


def test_the_error_of_a_column_counts_where_there_is_one():
    error = 0.1 / np.sqrt(8) * np.sqrt(2)
    assert compare_tables(table(rank=3 + 4 * error), table(), Metrics).empty
    found = compare_tables(table(rank=3 + 6 * error), table(), Metrics)
    assert set(found["column"]) == {"rank"} and len(found) == 3


@dataclass(frozen=True)
class Averages(Row):
    """One row each, with the error of the mean and without that of the deviation."""

    keys: ClassVar[tuple[str, ...]] = ("width",)

    width: int
    rank: float
    rank_se: float
    rank_sd: float


def test_an_estimate_without_an_error_beside_others_that_have_one_is_not_judged():
    kept = pd.DataFrame({"run": "hash", "width": [1], "rank": 3.0, "rank_se": 0.1, "rank_sd": 1.0})
    assert compare_tables(kept.assign(rank_sd=1.1), kept, Averages).empty
    assert set(compare_tables(kept.assign(rank=4.0), kept, Averages)["column"]) == {"rank"}
    assert set(compare_tables(kept.assign(rank_sd=np.nan), kept, Averages)["column"]) == {"rank_sd"}


@pytest.mark.parametrize("own", [np.nan, np.inf])
def test_a_number_against_a_non_number_differs(own):
    found = compare_tables(table(loss=own), table(), Metrics)
    assert len(found) == 3 and np.isinf(found["deviation"]).all()
    assert compare_tables(table(loss=own), table(loss=own), Metrics).empty


def test_a_missing_row_differs():
    assert set(compare_tables(table().query("width < 3"), table(), Metrics)["key"]) == {"3"}


def test_rounding_noise_is_no_difference_and_a_thousandth_is():
    """A column without spread, of order one or what ought to be zero beside it."""
    for size in (1.0, 1e-12, 0.0):
        kept = table(loss=size)
        assert compare_tables(kept.assign(loss=size + 1e-13), kept, Metrics).empty
        found = compare_tables(kept.assign(loss=size + 2e-3), kept, Metrics)
        assert set(found["column"]) == {"loss"} and len(found) == 3
        assert found["relative"].to_numpy() == pytest.approx(2e-3)


def test_rows_that_differ_in_no_mean_are_not_equal():
    """The largest difference is that of rows: what cancels in a mean is said."""
    kept = table()
    own = kept.assign(loss=kept["loss"] + np.where(kept["replicate"] % 2, 0.01, -0.01))
    assert compare_tables(own, kept, Metrics).empty
    compared = comparison.differences(own, kept, Metrics)
    assert compared["relative"].max() == pytest.approx(0.01 / kept["loss"].min(), rel=0.1)


NAME = "bottleneck-example20"
"""Of the canonical figures the soonest made; its table has no replicates."""


@pytest.fixture
def compared(tmp_path, monkeypatch, capsys):
    """Makes the figure, keeps it, changes what was kept; then the command: exit code and stdout."""
    typed = ["scale=smoke", f"outputs={tmp_path}"]
    variant = paper_figure(NAME, typed)
    for run in variant.runs:
        execute(run, Settings(outputs=str(tmp_path), device="cpu"))
    make(variant)
    reference = tmp_path / "reference"
    monkeypatch.setattr(comparison, "REFERENCE", reference)
    monkeypatch.setattr(
        comparison, "figure_names", lambda: [NAME, "bottleneck-linear", "rank-fig6"]
    )

    def command(change=lambda rows: rows) -> tuple[int, str]:
        path = keep(NAME, typed, reference) / "metrics.csv"
        change(pd.read_csv(path)).to_csv(path, index=False)
        (reference / "smoke" / "bottleneck-linear").mkdir(exist_ok=True)
        capsys.readouterr()
        return comparison.main(typed), capsys.readouterr().out

    return command


def shifted(by):
    return lambda rows: rows.assign(max_error=rows["max_error"] + by)


def test_the_command_says_how_alike_the_numbers_are(compared):
    code, said = compared()
    assert code == 0 and f"{NAME}: equal to the reference\n" in said
    code, said = compared(shifted(1e-13))
    assert code == 0
    assert f"{NAME}: equal up to rounding (largest relative difference 1e-13 in metrics.max" in said
    code, said = compared(lambda rows: rows.assign(epsilon=rows["epsilon"] * (1 + 1e-4)))
    assert code == 0 and f"{NAME}: as the reference, up to chance (largest deviation 0.5" in said
    code, said = compared(shifted(1e-3))
    assert code == 1 and "numbers differ" in said and "max_error" in said


def test_what_is_not_made_or_not_kept_is_listed_and_differs_in_nothing(compared):
    code, said = compared()
    assert code == 0
    assert "not made at scale smoke: bottleneck-linear\n" in said
    assert "not in the reference at scale smoke: rank-fig6\n" in said


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
    assert "numbers" not in said and "-before" in said


def test_an_estimate_that_is_not_judged_is_named(compared, monkeypatch):
    """As if the table of the figure had the error of another of its estimates."""
    plain = rows_of("example20")["metrics"]
    estimated = make_dataclass(
        "Estimated", [("epsilon_se", float)], bases=(plain,), frozen=True, kw_only=True
    )
    monkeypatch.setattr(comparison, "rows_of", lambda study: {"metrics": estimated})
    code, said = compared(shifted(1e-3))
    assert code == 0
    assert "note: without an error of their own, and not judged: metrics.max_error\n" in said
