"""The columns of all tables are explained outside the sources."""

import re
from dataclasses import fields

import pandas as pd
import pytest
from in_process import run

from runner.cli.help import columns
from runner.core.catalogue import configs, rows_of
from runner.core.names import IN_PICTURES
from runner.results.captions import in_tables


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


def test_what_pictures_call_otherwise_has_both_names_in_help_and_captions():
    text = columns("rank_collapse")
    assert re.search(r"rank_bound: float\n.*; in pictures r\n", text)
    assert "; in pictures none plain" in text
    names = dict.fromkeys(name.partition("=")[0] for name in IN_PICTURES)
    tables = {"metrics": pd.DataFrame(columns=[*names])}
    words = "Rank of plain networks, r, and mean r."
    both = ", ".join(f"{picture} is {name}" for name, picture in IN_PICTURES.items())
    assert in_tables(words, tables) == f"in the tables {both}"
    assert in_tables("Ranking of others.", tables).startswith("in the tables rank") is False
    assert in_tables(words, {"metrics": pd.DataFrame(columns=["loss"])}) == ""
