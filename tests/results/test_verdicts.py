"""Verdicts as lines: one for each claim, those that do not hold always, and few of the others."""

from pathlib import Path

import pandas as pd
import pytest
from repository import REPOSITORY

from runner.results.verdicts import MOST_CLAIMS, line, lines, summary

PATH = Path("outputs/figures/quick/fig4.claims.csv")


def judged(*verdicts: str, kind: str = "paper", **columns) -> pd.DataFrame:
    """Claims with these verdicts, called by their number."""
    found = {"statement": [f"statement {i}" for i in range(len(verdicts))], "verdict": verdicts}
    found |= {
        "kind": kind,
        "note": "a reason",
        "measured": "error: 21 (17 to 22), 5 networks",
        "n": 5,
    }
    return pd.DataFrame(found | columns)


def only(table: pd.DataFrame):
    (row,) = table.itertuples()
    return row


def test_a_claim_is_a_line_of_verdict_statement_and_what_was_measured():
    said = line(only(judged("holds")))
    assert said.startswith("✓ holds      statement 0   ")
    assert said.endswith("   error: 21 (17 to 22), 5 networks")
    whose = line(only(judged("undecided", kind="ours")))
    assert whose.startswith("? undecided  statement 0 (ours)   ")
    assert whose.endswith("   error: 21 (17 to 22), 5 networks; a reason")
    assert line(only(judged("fails"))).startswith("✗ fails      ")


def test_without_numbers_it_says_why():
    row = only(judged("undecided", n=0, measured=""))
    assert line(row).endswith("   a reason")
    assert line(row, "smoke") == "? undecided  statement 0"


def test_the_papers_own_come_first():
    table = pd.concat([judged("holds", kind="ours"), judged("fails", kind="paper")])
    assert [each[:1] for each in lines(table, PATH, "quick")[:2]] == ["✗", "✓"]


def test_of_many_claims_those_that_hold_are_left_out():
    many = judged(*["holds"] * 20, "fails", "undecided")
    said = lines(many, PATH, "quick")
    assert len(said) == MOST_CLAIMS + 1
    assert [each[0] for each in said[-4:-2]] == ["✗", "?"]
    assert said[-2] == f"… and 9 more that hold: {PATH}"
    bad = judged("holds", *["fails"] * 20)
    said = lines(bad, PATH, "quick")
    assert len(said) == 22 and said[-2] == f"… and 1 more that holds: {PATH}"
    assert len(lines(judged(*["holds"] * MOST_CLAIMS), PATH, "quick")) == MOST_CLAIMS + 1


def test_smoke_says_once_that_it_is_too_small():
    said = lines(judged(*["undecided"] * 20, n=0), PATH, "smoke")
    assert len(said) == MOST_CLAIMS + 1 and said[-2] == f"… and 7 more: {PATH}"
    assert said[-1].startswith("20 claims are undecided. smoke is too small to judge")
    assert "\n".join(said).count("too small") == 1
    assert summary(judged("holds", "holds"), "smoke") == "2 claims hold."


@pytest.mark.parametrize(
    ("verdicts", "standing", "text"),
    [
        (
            ["holds"],
            ["exploratory"],
            "1 claim holds. Exploratory: numbers of this seed were known before the rule was what"
            " it is.",
        ),
        (
            ["undecided"] * 2,
            ["pre-registered"] * 2,
            "2 claims are undecided. All pre-registered: the rule stood before these numbers.",
        ),
        (
            ["holds", "holds", "fails", "undecided"],
            ["pre-registered"] * 3 + ["exploratory"],
            "2 claims hold, 1 fails, 1 is undecided. 3 pre-registered, 1 exploratory.",
        ),
    ],
)
def test_how_many_hold_and_how_they_stand_is_said_in_sentences(verdicts, standing, text):
    assert summary(judged(*verdicts, standing=standing), "quick") == text


def test_every_kept_figure_has_few_lines_and_none_is_lost():
    for path in sorted((REPOSITORY / "outputs" / "reference").glob("*/*/claims.csv")):
        table = pd.read_csv(path, keep_default_na=False)
        said = "\n".join(lines(table, path, "quick"))
        others = table[table["verdict"] != "holds"]
        assert all(statement in said for statement in others["statement"])
        assert len(said.splitlines()) <= MOST_CLAIMS + 1, path
