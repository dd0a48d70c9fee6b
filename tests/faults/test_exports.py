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

from runner.commands.runs import _number_in_tex, joined, means
from runner.core.settings import Settings
from runner.papers.batch_norm_rank.rank_chain.config import RankChain
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
    shown = means(rows[rows["replicate"] == 0], rates[:1], name, latex=True)
    cells = shown.drop(columns="n").astype(str).to_numpy().ravel()
    assert not any("nan" in cell and "pm" in cell for cell in cells)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.5, "1.5"), (1e-16, "$1 \\times 10^{-16}$"), (-2.5e22, "$-2.5 \\times 10^{22}$"),
        (np.inf, "$\\infty$"), (-np.inf, "$-\\infty$"), (np.nan, "nan"), (0.0, "0"),
    ],
)  # fmt: skip
def test_numbers_in_latex(value, shown):
    assert _number_in_tex(value, 4) == shown


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
    assert set(rows.loc[rows["run"] == folder.name, "max_abs_error"]) == {""}
    assert "" not in set(rows.loc[rows["run"] != folder.name, "max_abs_error"])
