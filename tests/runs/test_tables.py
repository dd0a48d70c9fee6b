from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar

import pandas as pd
import pytest

from runner.core.studies import Row
from runner.runs.tables import TableWriter, facts_of, read_table, rows_in


@dataclass(frozen=True)
class Metrics(Row):
    table: ClassVar[str] = "metrics"

    name: str
    step: int
    value: float


@dataclass(frozen=True)
class Everything(Row):
    table: ClassVar[str] = "everything"

    text: str
    whole: int
    number: float
    truth: bool


def write(folder, rows, tables=None):
    writer = TableWriter(folder, tables or {})
    for row in rows:
        writer.write(row)
    sizes = writer.flush()
    writer.close()
    return sizes


def test_numbers_read_back_exactly_and_nan_and_inf_are_data(tmp_path):
    values = [0.1 + 0.2, 1e-300, nan, inf, -inf, 3]
    write(tmp_path, [Metrics("a, b", index, value) for index, value in enumerate(values)])
    path = tmp_path / "metrics.csv"
    table = read_table(path, facts_of(path))
    pd.testing.assert_series_equal(
        table["value"], pd.Series(values, dtype=float, name="value"), check_exact=True
    )
    assert list(table["name"]) == ["a, b"] * 6


def test_rows_read_back_as_they_were_written(tmp_path):
    texts = ["", "a, b", 'a "b"', "two\nlines", "1"]
    values = [0.1 + 0.2, 1e-300, inf, -inf, 3.0]
    rows = [
        Everything(text, index, value, index % 2 == 0)
        for index, (text, value) in enumerate(zip(texts, values, strict=True))
    ]
    write(tmp_path, rows)
    assert list(rows_in(tmp_path / "everything.csv", Everything)) == rows


def test_a_value_of_the_wrong_type_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"metrics.step is 1.5"):
        write(tmp_path, [Metrics("a", 1.5, 0.0)])
    with pytest.raises(TypeError, match=r"metrics.value is '1'"):
        write(tmp_path, [Metrics("a", 1, "1")])


def test_going_on_cuts_what_no_checkpoint_vouches_for(tmp_path):
    sizes = write(tmp_path, [Metrics("kept", 0, 1.0)])
    write(tmp_path, [Metrics("lost", 1, 2.0)], sizes)
    write(tmp_path, [Metrics("new", 1, 3.0)], sizes)
    assert (tmp_path / "metrics.csv").read_text() == "name,step,value\nkept,0,1.0\nnew,1,3.0\n"
