"""The tables of several runs as one file."""

import io

import pandas as pd
import pytest

from runner.core.errors import InputError
from runner.runs import exporting
from runner.runs.inventory import find


@pytest.fixture
def runs(outputs):
    return [each.run for each in find(outputs, "bn_only")]


def test_the_joined_table_has_every_row_with_its_parameters(runs):
    rows = exporting.joined(runs)
    assert len(rows) == sum(len(run.tables()["metrics"]) for run in runs)
    assert rows["run"].nunique() == 3 and set(rows["train_samples"]) == {640}
    assert set(rows["methods"]) == {"sgd", "sgd+teacher_construction+dense+student_construction"}
    assert set(exporting.joined(runs, "curves")["target_width"]) == {2, 3}
    with pytest.raises(InputError, match="did you mean 'curves'"):
        exporting.joined(runs, "curve")


def test_csv_reads_back_to_the_same_numbers(runs):
    rows = exporting.joined(runs)
    back = pd.read_csv(io.StringIO(exporting.as_csv(rows)))
    pd.testing.assert_frame_equal(back, rows, check_dtype=False)


def test_latex_is_a_booktabs_table_escaped_and_without_what_all_rows_share(runs):
    rows = exporting.concise(exporting.joined(runs), runs)
    assert {"run", "seed", "train_samples"}.isdisjoint(rows)
    assert {"method", "target_width", "methods", "test_mse"} <= set(rows)
    text = exporting.as_latex(rows.assign(note="50% of a_b & c"))
    assert text.startswith("% \\usepackage{booktabs}\n\\begin{tabular}")
    for rule in ("\\toprule", "\\midrule", "\\bottomrule", "test\\_mse", "50\\% of a\\_b \\& c"):
        assert rule in text
    assert text.count("\\\\\n") == len(rows) + 1


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    exporting.write_text("a,b\n", tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == "a,b\n"
    with pytest.raises(InputError, match="nowhere/table.csv cannot be written"):
        exporting.write_text("a,b\n", tmp_path / "nowhere" / "table.csv")


def test_parquet_without_pyarrow_says_how_to_get_it(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install pyarrow"):
        exporting.write_parquet(exporting.joined(runs), tmp_path / "table.parquet")
    assert not list(tmp_path.glob("*parquet*"))


def test_parquet_reads_back_to_the_same_numbers(runs, tmp_path):
    pytest.importorskip("pyarrow")
    rows = exporting.joined(runs)
    exporting.write_parquet(rows, tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), rows)
