"""Tables read back as they were written, whatever looks like something else."""

from dataclasses import asdict, dataclass
from math import inf, nan
from typing import ClassVar

import pandas as pd
import pytest

from runner.core.studies import Row
from runner.runs.tables import TableWriter, read_table, rows_in


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
    extents = writer.flush()
    writer.close()
    return extents


def read(folder, name, extents):
    return read_table(folder / f"{name}.csv", asdict(extents[name]))


def test_numbers_read_back_exactly_and_nan_and_inf_are_data(tmp_path):
    values = [0.1 + 0.2, 1e-300, nan, inf, -inf, 3]
    extents = write(tmp_path, [Metrics("a, b", index, each) for index, each in enumerate(values)])
    table = read(tmp_path, "metrics", extents)
    pd.testing.assert_series_equal(
        table["value"], pd.Series(values, dtype=float, name="value"), check_exact=True
    )
    assert list(table["name"]) == ["a, b"] * 6


TEXTS = [
    "", "NA", "NaN", "nan", "None", "null", "001", "1", "1e3", "1_0", "True", "inf", " a ", "#",
    "a, b", 'a "b"', '"', "two\nlines", "two\rlines", "two\r\nlines", "\n", "\r", "\u2028", "naïve",
]  # fmt: skip
"""Texts that look like no text, and texts that look like several lines."""


@pytest.mark.parametrize("texts", [TEXTS, [""], ["NA"], ["\n"]], ids=repr)
def test_text_stays_text_and_rows_are_counted(tmp_path, texts):
    rows = [Everything(text, i, i / 3, i % 2 == 0) for i, text in enumerate(texts)]
    extents = write(tmp_path, rows)
    assert extents["everything"].rows == len(texts)
    table = read(tmp_path, "everything", extents)
    assert list(table["text"]) == texts
    assert [str(kind) for kind in table.dtypes[1:]] == ["int64", "float64", "bool"]
    assert list(rows_in(tmp_path / "everything.csv", Everything)) == rows


def test_a_run_of_before_reads_as_it_did(tmp_path):
    """Its result does not say what is text."""
    extents = write(tmp_path, [Metrics("001", 0, nan)])
    said = {"bytes": 0, "sha256": extents["metrics"].sha256}
    table = read_table(tmp_path / "metrics.csv", said)
    pd.testing.assert_frame_equal(table, pd.read_csv(tmp_path / "metrics.csv"))


def test_a_value_of_the_wrong_type_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"metrics.step is 1.5"):
        write(tmp_path, [Metrics("a", 1.5, 0.0)])
    with pytest.raises(TypeError, match=r"metrics.value is '1'"):
        write(tmp_path, [Metrics("a", 1, "1")])


def test_going_on_cuts_what_no_checkpoint_vouches_for(tmp_path):
    extents = write(tmp_path, [Metrics("kept\n", 0, 1.0)])
    write(tmp_path, [Metrics("lost", 1, 2.0)], extents)
    after = write(tmp_path, [Metrics("new", 1, 3.0)], extents)
    content = 'name,step,value\n"kept\n",0,1.0\nnew,1,3.0\n'
    assert (tmp_path / "metrics.csv").read_text() == content
    assert after["metrics"].rows == 2 and after["metrics"].bytes == len(content)
    assert after["metrics"].columns == {"name": "str", "step": "int", "value": "float"}
