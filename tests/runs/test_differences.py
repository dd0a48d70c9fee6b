"""Two runs side by side: parameters, code, and every number."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from runner.runs.differences import compare, distances
from some_runs import METHODS, one

from runner.runs import differences
from runner.runs.inventory import run_in


def table(**changes):
    columns = {"layer": [1, 2, 3], "kind": ["a", "a", "b"], "loss": [1.0, 2.0, np.nan]}
    return pd.DataFrame({**columns, **changes})


def columns(found):
    return found.columns.set_index("column")


def test_equal_tables_do_not_differ_in_whatever_order():
    found = compare("metrics", table(), table().iloc[::-1], ["layer"])
    assert found.is_none and found.matched == 3 and found.keys == ("layer",)
    assert list(columns(found)["equal"]) == [3, 3]


def test_rounding_is_no_difference():
    found = compare("metrics", table(), table(loss=[1.0, 2.0 + 1e-10, np.nan]), ["layer"])
    assert found.is_none
    assert columns(found).loc["loss", ["equal", "rounding", "differ"]].tolist() == [2, 1, 0]


def test_the_largest_difference_is_named_with_its_place():
    found = compare("metrics", table(), table(loss=[1.1, 4.0, np.nan]), ["layer", "kind"])
    loss = columns(found).loc["loss"]
    assert not found.is_none
    assert (loss["equal"], loss["differ"], loss["largest"]) == (1, 2, 0.5)
    assert loss["at"] == "layer=2, kind=a: 2 and 4"


def test_a_number_against_none_and_text_against_other_text_differ():
    found = compare("metrics", table(), table(loss=[1.0, 2.0, 3.0], kind=list("abb")), ["layer"])
    assert np.isinf(columns(found)["largest"]).all()
    assert columns(found).loc["kind", "at"] == "layer=2: a and b"


def test_rows_of_one_run_alone_are_counted():
    found = compare("metrics", table().head(2), table().tail(1), ["layer"])
    assert (found.matched, found.only_a, found.only_b) == (0, 2, 1) and not found.is_none


def test_rows_of_equal_keys_are_matched_by_their_order():
    found = compare("metrics", table(), table(), ["kind"])
    assert found.is_none and found.matched == 3 and found.keys == ("kind", "order of rows")


def test_nearly_equal_numbers_are_shown_with_the_digits_that_differ():
    found = compare("metrics", table(), table(loss=[1.0, 2.00000001, np.nan]), ["layer"])
    assert columns(found).loc["loss", "at"] == "layer=2: 2.0 and 2.00000001"


def test_distances_are_relative_to_the_larger():
    a = np.array([1.0, -1.0, 0.0, np.inf, np.inf, np.nan, 0.0])
    b = np.array([2.0, 1.0, 0.0, np.inf, -np.inf, np.nan, 1e-300])
    assert distances(a, b).tolist() == [0.5, 2.0, 0.0, 0.0, np.inf, 0.0, 1.0]


# ------------------------------------------------------------------------------------- of runs


@pytest.fixture
def pair(outputs):
    return [run_in(one(outputs, target_width=width, methods=METHODS)) for width in (2, 3)]


def test_a_run_and_its_copy_do_not_differ(pair, tmp_path):
    copy = run_in(shutil.copytree(pair[0].folder, tmp_path / "elsewhere"))
    assert differences.parameters(pair[0], copy) == {}
    assert differences.origins(pair[0], copy) == {}
    assert all(each.is_none for each in differences.numbers(pair[0], copy))


def test_parameters_and_origins_that_differ_are_named(pair):
    assert differences.parameters(*pair) == {"target_width": (2, 3)}
    path = pair[1].folder / "provenance.json"
    about = json.loads(path.read_text())
    about |= {"code": "another", "commit": "0123456789", "dirty": True, "seconds": 1e9}
    about["versions"]["torch"] = "0.1"
    about["instructions"]["blas"] = "openblas Prescott"
    path.write_text(json.dumps(about))
    found = differences.origins(*pair)
    assert set(found) == {"code", "commit", "torch", "instructions of blas"}
    assert found["commit"][1] == "01234567+" and found["torch"][1] == "0.1"


def test_a_key_that_only_tells_the_runs_apart_matches_no_rows(pair):
    metrics = {each.table: each for each in differences.numbers(*pair)}["metrics"]
    assert metrics.matched == 8 and not metrics.only_a and not metrics.only_b
    assert not {"target_width", "width"} & {*metrics.keys, *metrics.columns["column"]}
    assert metrics.columns.set_index("column").loc["test_mse", "differ"] == 8


def test_a_table_of_one_run_alone_has_no_rows_in_the_other(pair):
    (pair[1].folder / "curves.csv").unlink()
    path = pair[1].result_path
    about = json.loads(path.read_text())
    del about["tables"]["curves"]
    path.write_text(json.dumps(about))
    curves = {each.table: each for each in differences.numbers(*pair)}["curves"]
    assert curves.only_a > 0 and not curves.matched and not curves.is_none
