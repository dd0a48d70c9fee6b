"""The end of a sweep: its runs in one short table, their place, and commands that choose them."""

import shlex
from pathlib import Path

import pandas as pd
import pytest
from in_process import run as run_here
from some_runs import METHODS, one

from runner.core import catalogue
from runner.core.catalogue import FOLDERS, Package
from runner.results import preview, sweeps
from runner.results.sweeps import ending, last_numbers
from runner.runs.inventory import find, run_in


@pytest.fixture
def runs(outputs):
    """A sweep over target_width."""
    return [run_in(one(outputs, target_width=width, methods=METHODS)) for width in (2, 3)]


def commands(text: str) -> list[list[str]]:
    """The words of the commands that are shown."""
    return [shlex.split(line)[3:] for line in text.splitlines() if "python -m runner" in line]


def test_the_table_has_what_differs_the_last_numbers_and_the_hash(runs):
    table, count = last_numbers(runs, 20)
    assert count == 2 and list(table.columns[:2]) == ["target_width", "method"]
    assert list(table["target_width"]) == [2] * 4 + [3] * 4
    assert set(table["run"]) == {run.folder.name[-8:] for run in runs}
    medians = runs[1].tables()["metrics"].groupby("method")["test_mse"].median()
    shown = table[table["target_width"] == 3].set_index("method")["test_mse"]
    pd.testing.assert_series_equal(shown.sort_index(), medians, check_names=False)


def test_of_what_a_run_follows_the_last_is_shown_of_what_it_repeats_the_median(
    outputs, monkeypatch
):
    (found,) = find(outputs, "example20")
    summary = pd.DataFrame(
        {
            "depth": [4, 8, 8, 8, 2, 4],
            "kind": ["a", "a", "a", "a", "b", "b"],
            "replicate": [0, 0, 1, 2, 0, 0],
            "grid": 3,
            "error": [1.0, 2.0, 3.0, 40.0, 5.0, 7.0],
        }
    )
    monkeypatch.setattr(sweeps, "summary_of", lambda run: summary)
    table, _ = last_numbers([found.run], 20)
    assert table.drop(columns="run").to_dict("list") == {
        "kind": ["a", "b"], "depth": [8, 4], "error": [3.0, 7.0]
    }  # fmt: skip


def test_a_long_table_ends_with_how_many_runs_are_left_out(outputs, runs, monkeypatch):
    monkeypatch.setattr(sweeps, "MOST_LINES", 4)
    text = ending(runs)
    assert "... and 1 more run\n" in text
    assert len(text.partition("\n...")[0].splitlines()) == 1 + 4
    assert last_numbers(runs, 4)[1] == 1, "what is not shown is not drawn"


def test_the_commands_choose_the_runs_of_the_sweep(outputs, runs, monkeypatch, capsys, tmp_path):
    text = ending(runs)
    assert f"\n2 runs of bn_only: {outputs}/runs/bn_only\n" in text
    monkeypatch.chdir(tmp_path)
    listing, export, diff = commands(text)
    assert run_here(listing, monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "2 runs: 2 complete" in shown
    assert all(run.folder.name[-8:] in shown for run in runs)
    assert run_here(export, monkeypatch) == 0
    exported = pd.read_csv(tmp_path / "bn_only.csv")
    assert set(exported["run"]) == {run.folder.name for run in runs}
    assert run_here(diff, monkeypatch) == 1
    assert "target_width  2  3" in capsys.readouterr().out


def test_each_study_of_a_sweep_has_a_table_of_its_own(outputs):
    text = ending([found.run for found in find(outputs)])
    assert "3 runs of bn_only: " in text and "1 run of example20: " in text


def test_a_study_without_a_preview_shows_its_first_table(outputs, monkeypatch):
    (found,) = find(outputs, "example20")
    monkeypatch.setattr(preview, "part_of", lambda study, part: None)
    table, _ = last_numbers([found.run], 20)
    assert list(table["depth"]) == [4] and "parameter_norm" in table


def test_the_commands_name_the_folder_of_studies_that_was_given(runs, monkeypatch):
    package = Package("runner.papers.norm_tuning", Path("/somewhere/norm_tuning"))
    monkeypatch.setattr(catalogue, "packages", lambda: [package])
    assert all(words[0] == "runs" for words in commands(ending(runs))), "installed"
    monkeypatch.setenv(FOLDERS, '["/else:where", "/somewhere/norm_tuning"]')
    for words in commands(ending(runs)):
        assert words[:3] == ["--config-dir", "/somewhere/norm_tuning", "runs"]


def test_the_default_folder_is_not_named(outputs, runs, monkeypatch):
    monkeypatch.chdir(outputs.parent)
    text = ending([run_in(Path("outputs") / run.folder.relative_to(outputs)) for run in runs])
    assert "outputs=" not in text and "2 runs of bn_only: outputs/runs/bn_only" in text
