"""The reference and what is compared with it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from runner.cli.composing import figure_runs
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import Row
from runner.publish import figures, reference
from runner.publish.comparison import compare, compare_tables
from runner.publish.reference import draw_all, keep
from runner.results.figures import make
from runner.runs.execution import execute
from runner.runs.run import Run


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


@pytest.mark.parametrize("own", [np.nan, np.inf])
def test_a_number_against_a_non_number_differs(own):
    found = compare_tables(table(loss=own), table(), Metrics)
    assert len(found) == 3 and np.isinf(found["deviation"]).all()
    assert compare_tables(table(loss=own), table(loss=own), Metrics).empty


def test_a_missing_row_differs():
    assert set(compare_tables(table().query("width < 3"), table(), Metrics)["key"]) == {"3"}


TYPED = ["scale=smoke", "train_samples=640", "test_samples=200", "replicates=3"]


@pytest.fixture
def made(tmp_path):
    """Figure 4 at a tiny size."""
    typed = [*TYPED, f"outputs={tmp_path}"]
    _, configs = figure_runs("fig4", typed)
    for config in configs:
        execute(Run(config, tmp_path), Settings(outputs=str(tmp_path), device="cpu"))
    make("fig4", "smoke", configs, tmp_path)
    return typed


def test_a_figure_drawn_from_the_reference_is_the_figure(made, tmp_path):
    keep("fig4", made, tmp_path / "reference")
    assert list(draw_all(tmp_path / "reference", tmp_path / "again")) == [("fig4", "smoke")]
    for end in ("png", "csv", "claims.csv"):
        drawn = (tmp_path / "figures" / "smoke" / f"fig4.{end}").read_bytes()
        assert (tmp_path / "again" / "smoke" / f"fig4.{end}").read_bytes() == drawn


def test_a_claim_that_no_longer_comes_out_as_kept_is_an_error(made, tmp_path):
    folder = keep("fig4", made, tmp_path / "reference")
    kept = pd.read_csv(folder / "claims.csv")
    kept["verdict"] = kept["verdict"].map({"holds": "fails"}).fillna("holds")
    kept.to_csv(folder / "claims.csv", index=False)
    with pytest.raises(InputError, match="not those that were kept"):
        list(draw_all(tmp_path / "reference", tmp_path / "again"))
    found = compare("fig4", made, tmp_path / "reference")
    assert set(found["table"]) == {"claims"} and len(found) == len(kept)


def test_own_results_agree_with_themselves_and_missing_ones_are_said(made, tmp_path):
    keep("fig4", made, tmp_path / "reference")
    assert compare("fig4", made, tmp_path / "reference").empty
    assert (
        compare("fig4", [*TYPED, f"outputs={tmp_path / 'empty'}"], tmp_path / "reference") is None
    )
    assert compare("fig5", made, tmp_path / "reference") is None


def test_only_a_current_figure_is_kept(made, tmp_path):
    (tmp_path / "figures" / "smoke" / "fig4.png").unlink()
    with pytest.raises(InputError, match="fig4 is not drawn yet"):
        keep("fig4", made, tmp_path / "reference")


def test_a_figure_is_current_until_a_run_changes(made, tmp_path):
    _, configs = figure_runs("fig4", made)
    runs = [Run(config, tmp_path) for config in configs]
    folder = tmp_path / "figures" / "smoke"
    assert figures.is_current("fig4", "smoke", runs, folder)
    outcome = figures.make_figure("fig4", made)
    assert outcome.outcome == "unchanged" and outcome.holds + outcome.fails + outcome.undecided > 3
    runs[0].result_path.unlink()
    assert not figures.is_current("fig4", "smoke", [Run(r.config, tmp_path) for r in runs], folder)


@pytest.mark.parametrize("words", [[], ["kep"], ["draw", "--fast"]])
def test_wrong_words_are_explained(words, capsys):
    with pytest.raises(SystemExit) as error:
        reference.main(words)
    assert error.value.code == 2
    assert "usage: python -m runner reference" in capsys.readouterr().err
