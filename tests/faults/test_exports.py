"""`runs export`: what varies has a line, null is a value, LaTeX has powers of ten."""

import hashlib
import io
import json
import shutil

import in_process
import numpy as np
import pandas as pd
import pytest
from some_runs import TINY

from runner.commands.export import (
    filled,
    fitting,
    joined,
    mean_in_tex,
    means,
    means_in_tex,
    means_of,
    number_in_tex,
)
from runner.core.settings import Settings
from runner.papers.batch_norm_rank.rank_chain.config import RankChain
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs.execution import execute
from runner.runs.run import Run


def compute(outputs, *configs) -> list[Run]:
    runs = [Run(config, outputs) for config in configs]
    for run in runs:
        execute(run, Settings(outputs=str(outputs), device="cpu"))
    return runs


@pytest.fixture(scope="module")
def chains(tmp_path_factory):
    """Chains of which one begins to measure at once, and one when it has forgotten its start."""
    sizes = {"widths": [8], "skips": [0.1], "layers": 400, "chains": 4}
    return compute(tmp_path_factory.mktemp("chains"), *(RankChain(**sizes, burn_in=b)
                                                        for b in (None, 0)))  # fmt: skip


@pytest.fixture(scope="module")
def rates(tmp_path_factory):
    """Runs whose rate is found, and one whose rate is given."""
    own = TINY | {"target_width": 2, "methods": ["sgd"]}
    return compute(tmp_path_factory.mktemp("rates"), *(BnOnly(**own, learning_rate=rate)
                                                       for rate in (None, 0.01)))  # fmt: skip


@pytest.fixture
def export(monkeypatch, capsys):
    def run(runs, *words):
        outputs = runs[0].folder.parents[2]
        code = in_process.run(["runs", "export", *words, f"outputs={outputs}"], monkeypatch)
        said = capsys.readouterr()
        assert code == 0, said.err
        return said.out

    return run


def test_null_is_a_value_of_a_parameter(chains, export):
    shown = export(chains, "--mean", "--csv")
    found = pd.read_csv(io.StringIO(shown), keep_default_na=False)
    assert len(found) == 2 and set(found["burn_in"]) == {"null", "0"}
    rows = pd.read_csv(io.StringIO(export(chains, "--csv")), keep_default_na=False)
    assert set(rows["burn_in"]) == {"null", "0"}
    assert "null" in export(chains, "--mean", "--latex")


def test_a_rate_that_is_found_is_a_measurement(rates, export):
    found = pd.read_csv(
        io.StringIO(export(rates, "--mean", "--csv", "--where", "learning_rate.isnull()"))
    )
    assert len(found) == 1 and found["learning_rate_n"][0] == TINY["replicates"]


def test_a_rate_that_is_given_is_a_parameter(rates, export):
    found = pd.read_csv(io.StringIO(export(rates, "--mean", "--csv")), keep_default_na=False)
    assert set(found["learning_rate"]) == {"null", "0.01"} and len(found) == 2
    assert export(rates, "--mean", "--latex").count("\\\\\n") == 3


def test_one_number_has_no_deviation_in_latex(rates):
    name, rows = joined(rates[:1])
    found = means(rows[rows["replicate"] == 0], rates[:1], name)
    shown = means_in_tex(found, rates[0])
    assert "pm" not in shown and "nan" not in shown and found["test_mse_std"].isna().all()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.5, "1.5"), (1e-16, "$1 \\times 10^{-16}$"), (-2.5e22, "$-2.5 \\times 10^{22}$"),
        (np.inf, "$\\infty$"), (-np.inf, "$-\\infty$"), (np.nan, "nan"), (0.0, "0"),
    ],
)  # fmt: skip
def test_numbers_in_latex(value, shown):
    assert number_in_tex(value, 4) == shown


def test_no_number_in_latex_has_an_e(chains, export):
    for words in (["--latex"], ["--latex", "--mean"]):
        shown = export(chains, *words)
        numbers = [cell.strip() for line in shown.splitlines() for cell in line.split("&")]
        assert not any(cell[:1].isdigit() and "e" in cell for cell in numbers)
        assert "pm nan" not in shown


def test_what_diverged_is_not_what_was_not_measured(rates, export, tmp_path):
    (run,) = compute(tmp_path, BnOnly(**TINY | {"target_width": 2}, learning_rate=1e30))
    rows = pd.read_csv(io.StringIO(export([run], "--csv")), keep_default_na=False)
    sgd = rows[rows["method"] == "sgd"]
    assert set(sgd["condition_number"]) == {""}, "of constructions alone"
    assert set(sgd["relative_mse"]) <= {"nan", "inf"}


def test_a_column_that_a_run_does_not_keep_is_empty(rates, export, tmp_path):
    outputs = tmp_path / "outputs"
    shutil.copytree(rates[0].folder.parents[2], outputs)
    folder = outputs / rates[0].folder.relative_to(rates[0].folder.parents[2])
    path, result = folder / "metrics.csv", folder / "result.json"
    pd.read_csv(path).drop(columns="max_abs_error").to_csv(path, index=False)
    said = json.loads(result.read_text())
    content = path.read_bytes()
    table = said["tables"]["metrics"]
    table |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    table["columns"].pop("max_abs_error")
    result.write_text(json.dumps(said))
    shown = export([Run(rates[0].config, outputs)], "--csv")
    rows = pd.read_csv(io.StringIO(shown), keep_default_na=False)
    assert set(rows.loc[rows["run"] == rates[0].key, "max_abs_error"]) == {""}
    assert "" not in set(rows.loc[rows["run"] != rates[0].key, "max_abs_error"])


@pytest.mark.parametrize(
    ("mean", "deviation", "shown"),
    [
        (13.63, 0.21, "$13.6 \\pm 0.2$"), (13.63, 0.14, "$13.63 \\pm 0.14$"),
        (0.8431, 0.0201, "$0.84 \\pm 0.02$"), (76.4, 42.0, "$76 \\pm 42$"),
        (4.4e-16, 3e-17, "$(4.4 \\pm 0.3) \\times 10^{-16}$"), (100.0, 0.0, "$100 \\pm 0$"),
        (4.4e-16, np.nan, "$4.4 \\times 10^{-16}$"), (13.6, np.nan, "13.6"),
        (0.0, 0.0, "$0 \\pm 0$"), (0.0, 2e-7, "$(0 \\pm 2) \\times 10^{-7}$"),
        (1.0, 4e-16, "$1 \\pm 0$"), (0.1235, 1e-8, "$0.123500000 \\pm 0.000000010$"),
        (12345.0, 0.0, "$12345 \\pm 0$"), (0.352112676056, 0.0, "$0.3521 \\pm 0$"),
        (-2.5e22, 3e21, "$(-2.5 \\pm 0.3) \\times 10^{22}$"),
        (9.97, 0.96, "$10.0 \\pm 1.0$"), (12345.678, 0.0, "$12346 \\pm 0$"),
        (1.234567e-9, 0.0, "$(1.235 \\pm 0) \\times 10^{-9}$"),
    ],
)  # fmt: skip
def test_a_mean_has_the_digits_of_its_deviation(mean, deviation, shown):
    assert mean_in_tex(mean, deviation) == shown


@pytest.fixture(scope="module")
def chosen(tmp_path_factory):
    """Runs of two seeds and two depths; each replicate gets its own learning rate."""
    sizes = {"width": 8, "samples": 16, "train_images": 128, "epochs": 2, "replicates": 2}
    sizes |= {"learning_rates": [0.01, 0.1], "selection_replicates": 1, "normalizations": ["none"]}
    return compute(
        tmp_path_factory.mktemp("chosen"),
        *(RankCollapse(**sizes, depth=depth, seed=seed) for depth in (2, 3) for seed in (0, 1)),
    )


def test_an_outcome_of_a_replicate_does_not_split_its_mean(chosen):
    name, rows = joined(chosen, "training")
    of_seed = rows.groupby(["depth", "seed"]).ngroup() % 2
    found = means(rows.assign(learning_rate=of_seed.map({0: 0.01, 1: 0.1})), chosen, name)
    assert len(found) == 4 and set(found["n"]) == {4}, "two depths, two epochs"
    assert set(found["learning_rate_mean"].round(3)) == {0.055}
    name, rows = joined(chosen, "selection")
    assert "learning_rate" in means(rows, chosen, name), "there it is tried, and a key"


def test_rows_are_chosen_by_a_column_of_the_table(chosen, export):
    rows = pd.read_csv(io.StringIO(export(chosen, "--table", "training", "--where", "epoch=2")))
    assert set(rows["epoch"]) == {2} and set(rows["depth"]) == {2, 3}
    words = ["--table", "training", "--where", "epoch=2", "--where", "depth=3"]
    rows = pd.read_csv(io.StringIO(export(chosen, *words)))
    assert set(rows["depth"]) == {3} and len(rows) == 4


def test_the_table_of_a_sweep_is_had_as_latex_and_csv(chosen, export):
    rows = pd.read_csv(io.StringIO(export(chosen, "--summary")))
    assert len(rows) == 4 and {"depth", "seed", "matrix_rank", "run"} <= {*rows}
    shown = export(chosen, "--summary", "--latex")
    assert "soft rank" in shown and shown.count("\\\\\n") == 5 and "nan" not in shown


def test_a_diverged_replicate_is_counted_and_named(chosen):
    name, rows = joined(chosen, "training")
    lost = rows.index[(rows["replicate"] == 1) & (rows["run"] == chosen[0].key)]
    rows.loc[lost, "train_loss"] = np.nan
    found = means(rows, chosen, name)
    short = chosen[0].folder.name[-8:]
    assert sorted(found["train_loss_n"]) == [3, 3, 4, 4] and set(found["test_loss_n"]) == {4}
    assert set(found["train_loss_diverged"]) == {"", f"1 of {short}"}
    assert np.isfinite(found["train_loss_mean"]).all() and "test_loss_diverged" not in found
    shown = means_in_tex(found, chosen[0])
    assert shown.count("(3 of 4)") == 2
    assert f"% train_loss: diverged and left out: replicate 1 of {short}\n" in shown


def test_what_a_file_of_images_has_is_no_measurement(chosen):
    name, rows = joined(chosen, "training")
    rows = rows.assign(classes=3, image_pixels="144 pixels")
    found = means(rows, chosen, name)
    assert not [column for column in found if "classes" in column or "pixels" in column]
    is_other = rows["run"].isin([run.key for run in chosen[:2]])
    found = means(rows.assign(classes=rows["classes"].mask(is_other, 4)), chosen, name)
    assert "classes" in found and "classes_mean" not in found, "it tells the rows apart"


def test_a_latex_table_of_means_has_no_equal_column_unless_it_is_named(chosen):
    name, rows = joined(chosen, "training")
    found = means(rows.assign(test_loss=2.0), chosen, name)
    shown = means_in_tex(found, chosen[0])
    assert "test\\_loss" not in shown and "test_loss = $2 \\pm 0$" in shown
    names = ["test_loss", "depth"]
    shown = means_in_tex(means_of(found, names), chosen[0], names)
    assert "epoch & test\\_loss & depth & n \\\\\n" in shown


def test_configurations_are_never_averaged(tmp_path):
    sizes = {"widths": [8], "skips": [0.1], "layers": 400, "chains": 4}
    runs = compute(
        tmp_path, *(RankChain(**sizes | {"skips": skips}) for skips in ([0.1], [0.1, 0.5]))
    )
    name, rows = joined(runs)
    rows = rows[rows["skip"] == 0.1].drop(columns="skips")
    assert len(means(rows, runs, name)) == 2


def export_code(words, outputs, monkeypatch, capsys):
    code = in_process.run(["runs", "export", *words, f"outputs={outputs}"], monkeypatch)
    return code, capsys.readouterr()


def test_a_latex_table_fits_a_page_or_asks_for_columns(rates, export, monkeypatch, capsys):
    outputs = rates[0].folder.parents[2]
    monkeypatch.setattr("runner.commands.export.MOST_COLUMNS", 4)
    code, said = export_code(["--latex"], outputs, monkeypatch, capsys)
    assert code == 2 and not said.out and "--columns" in said.err and "--mean" in said.err
    assert len(said.err.splitlines()) == 2 and "target_width" not in said.err, "it is equal"
    chosen = export(rates, "--latex", "--columns", "replicate,test_mse", "--columns", "method")
    assert "replicate & test\\_mse & method \\\\\n" in chosen
    table = pd.read_csv(io.StringIO(export(rates, "--columns", "test_mse,run")))
    assert list(table) == ["test_mse", "run"]
    means = pd.read_csv(io.StringIO(export(rates, "--mean", "--columns", "train_mse")))
    assert {"train_mse_mean", "train_mse_std", "train_mse_n"} < {*means}
    assert not [name for name in means if name.endswith("_mean") and name != "train_mse_mean"]
    for typed, meant in (("tran_mse", "train_mse"), ("learning_rte", "learning_rate")):
        code, said = export_code(["--mean", "--columns", typed], outputs, monkeypatch, capsys)
        assert code == 2 and f"did you mean '{meant}'" in said.err


def test_columns_that_are_equal_are_told_above_a_latex_table(rates, chains):
    rows = pd.DataFrame({"run": ["a", "a"], "seed": [0, 0], "fit": [1.0, 1.0], "mse": [0.1, 0.2]})
    table, notes = fitting(rows, rates[0], [])
    assert list(table) == ["mse"] and notes == ["equal in all rows: fit = 1.0"]
    table, notes = fitting(rows.head(1), rates[0], [])
    assert list(table) == ["fit", "mse"] and not notes, "one row: only parameters are left out"


def test_the_table_of_a_sweep_has_texts_where_nothing_was_measured(recwarn):
    rows = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None], "c": [1, 2]})
    assert filled(rows).to_dict("list") == {"a": [1.0, ""], "b": ["x", ""], "c": [1, 2]}
    assert filled(rows)["c"].dtype == int and not recwarn.list


def test_an_old_jinja2_is_told_in_one_line(chains, monkeypatch, capsys):
    def refused(self):
        raise ImportError("Pandas requires version '9.9' or newer of 'jinja2'")

    monkeypatch.setattr(pd.DataFrame, "style", property(refused))
    words, outputs = ["--latex", "--mean"], chains[0].folder.parents[2]
    code, said = export_code(words, outputs, monkeypatch, capsys)
    assert code == 2 and len(said.err.splitlines()) == 1
    assert "'9.9' or newer of 'jinja2'" in said.err and "pip install --upgrade jinja2" in said.err
