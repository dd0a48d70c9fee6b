"""Verdicts as lines: one for each claim, those that do not hold always, and few of the others."""

from pathlib import Path

import pandas as pd
import pytest
from repository import REPOSITORY

from runner.results.verdicts import MOST_CLAIMS, line, lines, summary

MEASURED = "error: 21 (17 to 22), 5 networks"
PATH = Path("outputs/figures/quick/fig4.claims.csv")


def judged(*verdicts: str, kind: str = "paper", **columns) -> pd.DataFrame:
    """Claims with these verdicts, called by their number."""
    found = {"statement": [f"statement {i}" for i in range(len(verdicts))], "verdict": verdicts}
    found |= {"kind": kind, "note": "a reason", "measured": MEASURED, "n": 5}
    return pd.DataFrame(found | columns)


@pytest.mark.parametrize(
    ("table", "scale", "begin", "end"),
    [
        (judged("holds"), "quick", "✓ holds      statement 0\n   ", f"   {MEASURED}"),
        (judged("fails"), "quick", "✗ fails      statement 0\n   ", f"   {MEASURED}"),
        (judged("undecided", kind="ours"), "quick", "? undecided  statement 0 (additional)\n   ",
         f"   {MEASURED}; a reason"),
        (judged("undecided", n=0, measured=""), "quick", "? undecided  ", "   a reason"),
        (judged("undecided", n=0, measured=""), "smoke", "? undecided  ", "  statement 0"),
    ],
)  # fmt: skip
def test_a_line_has_verdict_statement_numbers_and_reason(table, scale, begin, end):
    (row,) = table.itertuples()
    text = line(row, scale)
    assert text.startswith(begin) and text.endswith(end)


def test_the_claims_of_the_paper_come_first():
    table = pd.concat([judged("holds", kind="ours"), judged("fails", kind="paper")])
    assert [text[:1] for text in lines(table, PATH, "quick")[:2]] == ["✗", "✓"]


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
            "1 claim holds. Exploratory: numbers of this seed were known before the rule had its"
            " present form.",
        ),
        (
            ["undecided"] * 2,
            ["pre-registered"] * 2,
            "2 claims are undecided. All pre-registered: the rule was stored before these numbers.",
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
        assert len(said.splitlines()) <= 2 * MOST_CLAIMS + 1, path  # a claim has two lines


def test_smoke_is_not_blamed_for_what_a_changed_parameter_leaves_out():
    """The reason is in the second line; the hint about the scale is for the others."""
    notes = ["no rows: normalization=none", "no network of more than 10 layers"]
    table = judged("undecided", "undecided", n=0, measured="", note=notes)
    *said, end = lines(table, PATH, "smoke", ["normalizations"])
    assert [text.splitlines()[1].strip() for text in said] == notes
    assert end.startswith("2 claims are undecided. smoke is too small to judge the others: scale=")
    (first, end) = lines(table.iloc[:1], PATH, "smoke", ["normalizations", "seed"])
    assert notes[0] in first and end == "1 claim is undecided."
    assert lines(table, PATH, "smoke", ["depth"])[-1].endswith(
        "smoke is too small to judge: scale=quick is the first that can."
    )
    assert all("\n" not in text for text in lines(table, PATH, "smoke"))
