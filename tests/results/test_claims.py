from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from runner.core.errors import InputError
from runner.results import claims
from runner.results.claims import COLUMNS, Claim, claims_of, in_words, judge
from runner.results.evidence import Evidence
from runner.results.quantities import Tables, quantity

NBSP = "\N{NO-BREAK SPACE}"


@quantity("x", each=("d",))
def x_of(tables: Tables) -> pd.DataFrame:
    return tables["metrics"].assign(value=tables["metrics"]["x"])


@quantity("x", each=("d",), numbers="estimates")
def estimate_of(tables: Tables) -> pd.DataFrame:
    return tables["metrics"].rename(columns={"x": "value"})


ABOVE = Claim(
    "above",
    "x is above zero at every width",
    "paper, Lemma 1",
    x_of().above(0),
    needs={"width": 2},
    note="up to {x.max:.2g}",
)


def table(x, width=(4, 8)) -> dict[str, pd.DataFrame]:
    widths = [width[i % len(width)] for i in range(len(x))]
    rows = {"x": x, "width": widths, "d": 4, "run": "b", "replicate": range(len(x))}
    return {"metrics": pd.DataFrame(rows), "other": pd.DataFrame({"run": ["a"], "data": "digits"})}


def test_a_claim_becomes_a_row():
    judged = judge("fig", [ABOVE], table([1.0, 2, 3, 4, 5]))
    row = judged.iloc[0]
    assert tuple(judged.columns) == COLUMNS
    assert row["verdict"] == "holds" and row["kind"] == "paper"
    assert row["rule"] == "x is above 0 for every d"
    assert row["measured"] == "x: 3 (1 to 5; bound: above 0; 5 replicates; d = 4)"
    assert row["note"] == "up to 5"
    assert (row["estimate"], row["low"], row["high"], row["n"]) == (3, 1, 5, 5)
    assert (row["p_value"], row["point"], row["data"]) == (0.03125, "d = 4", "digits")
    assert row["runs"] == "a b" and row["digest"] == ABOVE.digest and row["left_out"] == 0


def test_networks_without_a_number_are_counted_and_said():
    row = judge("fig", [ABOVE], table([1.0, 2, 3, 4, 5, np.nan, np.nan])).iloc[0]
    assert row["verdict"] == "undecided" and row["n"] == 7
    assert "7 replicates; 2 without a number; d = 4" in row["measured"]


def test_a_claim_whose_quantity_needs_an_absent_column_is_named():
    lacking = table([1.0, 2])
    del lacking["metrics"]["x"]
    with pytest.raises(LookupError, match="claim above: the tables have no 'x'"):
        judge("fig", [ABOVE], lacking)


def test_claims_about_a_figure_that_does_not_exist_are_refused(monkeypatch):
    class Part:
        CLAIMS = {"rank-fig1": [ABOVE], "rank-figg1": [ABOVE]}

    monkeypatch.setattr(claims, "part_of", lambda study, part: Part)
    with pytest.raises(InputError, match="rank_collapse/claims.py: no figure has the name rank-fi"):
        claims_of("rank-fig1", "rank_collapse")


@pytest.mark.parametrize(
    ("errors", "said"),
    [((0.5, 0.5), "x: 1 in the closest case"), ((0.1, 1.0), "x: 2 in the least certain case")],
)
def test_the_case_is_the_closest_one_or_the_least_certain_one(errors, said):
    rows = {"x": [1.0, 2.0], "error": errors, "n": 20, "d": [4, 8], "run": "b"}
    claim = replace(ABOVE, rule=estimate_of().above(0), needs={}, note="")
    row = judge("fig", [claim], {"metrics": pd.DataFrame(rows)}).iloc[0]
    assert row["verdict"] == "holds" and row["measured"].startswith(said)


def test_the_contrary_fails_with_its_own_p_value():
    row = judge("fig", [ABOVE], table([-1.0, -2, -3, -4, -5])).iloc[0]
    assert row["verdict"] == "fails" and row["p_value"] == 0.03125


def test_too_few_replicates_say_how_many_would_do():
    row = judge("fig", [ABOVE], table([1.0, 2, 3])).iloc[0]
    assert row["verdict"] == "undecided" and "3 replicates" in row["measured"]
    assert row["note"] == "up to 3; at least 5 replicates are needed to decide"


def test_a_statement_about_several_widths_needs_several():
    row = judge("fig", [ABOVE], table([1.0] * 5, width=(4,))).iloc[0]
    assert row["verdict"] == "undecided" and not row["measured"]
    assert row["note"] == "the tables have 1 value of width; 2 are needed"


def test_a_claim_needs_what_its_quantities_need_and_what_it_says_itself():
    @quantity("exponent", needs={"width": 3, "depth": 2})
    def exponent(tables: Tables) -> pd.DataFrame:
        return tables["metrics"]

    rules = [exponent().above(0), x_of().above(0)]
    claim = Claim("a", "it grows", "paper", rules, needs={"width": 5, "skip": 2})
    assert claim.needs == {"width": 5, "depth": 2, "skip": 2}
    claim = Claim("a", "it grows", "paper", rules[::-1], needs={"width": 2})
    assert claim.needs == {"width": 3, "depth": 2}


def assuming(x) -> pd.Series:
    claim = Claim("a", "where x > 0", "paper", x_of().given("x > 0").above(0))
    assert claim.printed == "x is above 0 for every d, where x > 0"
    return judge("fig", [claim], table(x)).iloc[0]


def test_what_misses_an_assumption_is_counted_and_a_fifth_of_it_is_the_most():
    row = assuming([1.0] * 8 + [-1.0, np.nan])
    assert (row["verdict"], row["left_out"], row["n"]) == ("holds", 0.2, 8)
    assert row["note"] == f"in 20{NBSP}% of the measurements it is not true that x > 0"
    row = assuming([1.0] * 11 + [-1.0] * 3)
    assert (row["verdict"], row["left_out"], row["n"]) == ("undecided", 0.214286, 11)
    assert row["note"] == (
        f"in 21{NBSP}% of the measurements it is not true that x > 0; "
        f"above 20{NBSP}% we do not judge"
    )
    row = assuming([-1.0] * 5)
    assert (row["verdict"], row["note"]) == (
        "undecided",
        "in all measurements it is not true that x > 0",
    )
    assert row["left_out"] == 1


def test_a_point_with_nothing_left_decides_nothing():
    rows = [{"d": d, "x": 1.0, "replicate": r} for d in range(10) for r in range(8)]
    tables = {"metrics": pd.DataFrame(rows)}
    claim = Claim("a", "where x > 0", "paper", x_of().given("x > 0").above(0))
    assert judge("fig", [claim], tables).iloc[0]["verdict"] == "holds"
    tables["metrics"].loc[lambda rows: rows["d"] == 3, "x"] = -1.0
    row = judge("fig", [claim], tables).iloc[0]
    assert (row["verdict"], row["left_out"]) == ("undecided", 0.1)
    assert "in all measurements at d = 3 it is not true that x > 0" in row["note"]


def test_several_rules_must_all_hold_and_those_alike_are_printed_once():
    claim = Claim("two", "x", "paper", [x_of().above(0), x_of().above(0), x_of().below(4.5)])
    assert claim.printed == "x is above 0 and below 4.5 for every d"
    assert judge("fig", [claim], table([1.0] * 5)).iloc[0]["verdict"] == "holds"
    row = judge("fig", [claim], table([5.0] * 8)).iloc[0]
    assert row["verdict"] == "fails" and row["point"] == "d = 4"


@pytest.mark.parametrize(
    ("unit", "estimate", "low", "high", "words"),
    [
        ("share", 0.8, 0.3, 0.95, "0.8 (0.3 to 0.95; bound: above 0; 4 of 5 tasks)"),
        ("ratio", 2.0, 1.0, 3.25, "2 (1 to 3.25; bound: above 0; 5 tasks)"),
        ("value", -0.609, -0.717, -0.609, "−0.61 (−0.72 to −0.61; bound: above 0; 5 tasks)"),
        ("ratio", 8.09, 0.9541, 1.07e7, "8.09 (0.954 to 1.07e7; bound: above 0; 5 tasks)"),
        ("value", 64.0, 64.0, 64.0, "64 (64 to 64; bound: above 0; 5 tasks)"),
        ("difference", 2.0, -np.inf, np.inf, "2 (bound: above 0; 5 tasks)"),
        ("difference", np.nan, -np.inf, np.inf, "no finite number (5 tasks)"),
    ],
)
def test_numbers_are_said_as_people_say_them(unit, estimate, low, high, words):
    found = Evidence(estimate, low, high, 5, 1.0, 1.0, unit=unit, quantity="x", of="tasks")
    found = replace(found, compared="above 0")
    assert in_words(found) == f"x: {words}"
    assert in_words(replace(found, point="d = 5")) == f"x: {words.removesuffix(')')}; d = 5)"


def test_a_ratio_may_be_a_sentence():
    found = Evidence(17.8, 15.4, 23.4, 8, 1.0, 1.0, quantity="A is {} B", of="networks")
    found = replace(found, compared="above 1", unit="ratio")
    assert in_words(found, " in the closest case") == (
        "A is 17.8 times B in the closest case (15.4 to 23.4; bound: above 1; 8 networks)"
    )


def test_a_logarithm_of_a_ratio_is_printed_as_the_ratio():
    found = Evidence(-1.0, -2.0, 1.0, 8, 1.0, 1.0, 0.0, quantity="A is {} B", of="networks")
    found = replace(found, compared="above 1", is_log2=True)
    assert in_words(found) == "A is 0.5 times B (0.25 to 2; bound: above 1; 8 networks)"


def test_rounding_errors_and_numbers_beside_their_bound_are_said_to_be():
    found = Evidence(8e-24, 3e-25, 6e-22, 8, 1.0, 1.0, 0.01, quantity="x", of="networks")
    found = replace(found, compared="below 0.01")
    assert in_words(found) == "x: 0 (up to rounding errors; bound: below 0.01; 8 networks)"
    assert in_words(replace(found, high=1e-9)).startswith("x: 0 (0 to 1e-9; bound")
    far = Evidence(10.6, 7.07, 1.22e13, 8, 1.0, 1.0, 1.0, quantity="A is {} B", of="networks")
    assert in_words(far) == "A is 10.6 times B (7.07 to 1.22e13; 8 networks)"
    far = replace(far, estimate=3.4, low=2.8, high=43.5, bound=0.0, is_log2=True)
    assert in_words(far) == "A is 10.6 times B (6.96 to 1.24e13; 8 networks)"
    near = Evidence(0.89964, 0.899, 0.90004, 8, 1.0, 1.0, 0.9, quantity="x", of="networks")
    near = replace(near, compared="below 0.9")
    assert in_words(near) == "x: 0.8996 (0.899 to 0.90004; bound: below 0.9; 8 networks)"


def test_a_relation_of_all_numbers_prints_the_least_favorable_one():
    claim = Claim("all", "x", "paper", x_of().always("<=", 4))
    row = judge("fig", [claim], table([1.0, 2, 3, 1, 2], width=(4, 8))).iloc[0]
    assert row["measured"] == "x: at most 3 (bound: at most 4; true in all 5 replicates; d = 4)"
    row = judge("fig", [claim], table([1.0, 2, 3, 5, 2], width=(4, 8))).iloc[0]
    assert row["measured"] == "x: up to 5 (bound: at most 4; true in only 4 of 5 replicates; d = 4)"
    equal = Claim("all", "x", "paper", x_of().always("=", 2))
    assert judge("fig", [equal], table([2.0] * 5)).iloc[0]["measured"].startswith("x: 2 (bound: ex")
