import pandas as pd

from runner.results.claims import (
    COLUMNS,
    Claim,
    Found,
    judge,
)
from runner.results.evidence import above

ABOVE = Claim(
    "above",
    "x is above zero at every width",
    "paper, Lemma 1",
    lambda tables: Found([above(tables["metrics"]["x"], point="d = 4")], "seen"),
    expected="x > 0",
    needs={"width": 2},
)


def table(x, width=(4, 8)):
    rows = {"x": x, "width": [width[i % len(width)] for i in range(len(x))], "run": "b"}
    return {"metrics": pd.DataFrame(rows), "other": pd.DataFrame({"run": ["a"], "data": "digits"})}


def test_a_claim_becomes_a_row():
    judged = judge("fig", [ABOVE], table([1.0, 2, 3, 4, 5]))
    row = judged.iloc[0]
    assert tuple(judged.columns) == COLUMNS
    assert row["verdict"] == "holds" and row["kind"] == "paper" and row["expected"] == "x > 0"
    assert row["measured"] == "seen; value 3 (1 to 5), n = 5 at d = 4"
    assert (row["estimate"], row["low"], row["high"], row["n"]) == (3, 1, 5, 5)
    assert (row["p_value"], row["point"], row["data"]) == (0.03125, "d = 4", "digits")
    assert row["runs"] == "a b"


def test_the_contrary_fails_with_its_own_p_value():
    row = judge("fig", [ABOVE], table([-1.0, -2, -3, -4, -5])).iloc[0]
    assert row["verdict"] == "fails" and row["p_value"] == 0.03125


def test_too_few_replicates_say_how_many_would_do():
    row = judge("fig", [ABOVE], table([1.0, 2, 3])).iloc[0]
    assert row["verdict"] == "undecided" and "n = 3" in row["measured"]
    assert "n = 5 could decide" in row["measured"]


def test_a_statement_about_several_widths_needs_several():
    row = judge("fig", [ABOVE], table([1.0] * 5, width=(4,))).iloc[0]
    assert row["verdict"] == "undecided"
    assert row["measured"] == "1 of at least 2 different values of width"
