"""The columns of all tables are explained outside the sources."""

import re
from dataclasses import fields

import pandas as pd
import pytest
from in_process import run

from runner.commands.help import columns
from runner.core.catalogue import configs, rows_of
from runner.results.captions import columns_named


@pytest.mark.parametrize("study", configs())
def test_each_has_its_type_and_a_sentence(study):
    text = columns(study)
    for table, row_class in rows_of(study).items():
        (part,) = [each for each in text.split("\n\n") if each.startswith(f"{table}.csv: ")]
        said = re.findall(r"^  (\w+): (\w+)( \(key\))?\n      (\S.*)$", part, re.M)
        names = [(item.name, item.type.__name__) for item in fields(row_class)]
        assert [each[:2] for each in said] == names, "each has a sentence"
        assert {name for name, _, key, _ in said if key} == {*row_class.keys}


def test_the_command_prints_them(monkeypatch, capsys):
    assert run(["study=rank_collapse", "--columns"], monkeypatch) == 0
    assert capsys.readouterr().out.strip() == columns("rank_collapse")
    assert run(["figure=rank-fig1", "--columns"], monkeypatch) == 0
    assert capsys.readouterr().out.strip() == columns("rank_collapse")
    assert run(["study=rank_colapse", "--columns"], monkeypatch) == 2


def test_what_is_printed_otherwise_has_both_names_in_help_and_captions():
    text = columns("rank_collapse")
    assert re.search(r"rank_bound: float\n.*; printed as r\n", text)
    assert re.search(r"matrix_rank: float\n.*; printed as rank\n", text)
    rows = pd.DataFrame({"normalization": ["none", "batch"], "matrix_rank": 1.0, "rank_bound": 1.0})
    words = "Rank of plain networks, and r."
    said = "none (plain), matrix_rank (rank), rank_bound (r)"
    assert columns_named(words, {"metrics": rows}, "rank_collapse") == f"names in tables: {said}"
    both = {"metrics": rows, "training": pd.DataFrame({"rank": [1.0]})}
    assert "matrix_rank" not in columns_named(words, both, "rank_collapse"), "rank is a column, too"
    assert columns_named("Ranking of others.", {"metrics": rows}, "rank_collapse") == ""
    assert columns_named(words, {"metrics": rows[["normalization"]][1:]}, "rank_collapse") == ""
