import numpy as np
import pandas as pd
import pytest

from runner.results import quantities
from runner.results.evidence import verdict
from runner.results.labels import Names
from runner.results.looks import Name
from runner.results.quantities import Quantity, Rule, Tables, quantity
from runner.results.sentences import rules_in_words


@quantity("{top} / {bottom}", each=("d", "m"), unit="ratio")
def ratio(tables: Tables, top: str, bottom: tuple, where: str, at_rate: float = 0.1) -> pd.Series:
    return tables["metrics"].query(where).set_index(["d", "m", "replicate"])["error"]


def said(*rules: Rule) -> str:
    return rules_in_words(rules)


@quantity("distance")
def distance(tables: Tables) -> pd.DataFrame:
    return tables["metrics"].assign(value=tables["metrics"]["error"])


def test_a_rule_prints_all_that_it_is():
    rule = ratio("sgd", ("a", "b_c"), "m <= d ** 2 and n == 2 * p").given("rank == d").above(1)
    where = "m ≤ d², n = 2 p and rank = d"
    assert said(rule) == f"SGD / a, b c is above 1 for every d and m, where {where}"
    largest = ratio("sgd", (), "d == d.max() and my_kind == 'a'").below(-2)
    assert said(largest).endswith("below −2 for every m, where d is the largest and my kind = a")
    assert said(ratio("a", ("b",), "m > 1", 0.2).within(0.5, of=1)) == (
        "a / b (at rate = 0.2) is between 0.5 and 1.5 for every d and m, where m > 1"
    )
    assert said(distance().always("=", 0)) == "distance is exactly 0 in all replicates"


def test_what_rules_have_in_common_is_printed_once():
    at = [ratio("a", "b", f"m > 1 and tau == {tau}").above(0) for tau in (0.1, 0.5, 0.9)]
    every = "for every d, m and tau = 0.1, 0.5 and 0.9, where m > 1"
    assert said(*at) == f"a / b is above 0 {every}"
    assert said(distance().above(1), distance().below(2)) == "distance is above 1 and below 2"
    two = [ratio("a", "b", where).above(0) for where in ("m == 1", "m > 1 or d == 2")]
    assert said(*two) == (
        "(1) a / b is above 0 for every d, where m = 1; (2) it is above 0 for every d and m, where"
        " m > 1 or d = 2"
    )
    pair = [ratio("a", "b", "m > 1").above(0), ratio("a", "c", "m > 1").above(0)]
    assert said(*pair) == "a / b and c is above 0 for every d and m, where m > 1"
    other = [ratio("a", "b", "m > 1").above(0), ratio("b", "c", "m > 1").below(2)]
    assert said(*other) == (
        "for every d and m, where m > 1: (1) a / b is above 0; (2) b / c is below 2"
    )


def test_a_ratio_may_be_a_sentence():
    @quantity("the error of {a} is {} that of {b}", unit="ratio")
    def times(tables: Tables, a: str, b: str) -> pd.Series: ...

    one = times("x", "y")
    assert said(one.above(1)) == "the error of x is larger than that of y"
    assert said(one.below(1)) == "the error of x is smaller than that of y"
    assert (
        said(one.above(2), one.below(8)) == "the error of x is more than 2 and less than 8 times"
        " that of y"
    )
    assert said(one.within(0.5, 1)) == "the error of x is between 0.5 and 1.5 times that of y"
    assert said(one.above(2), times("x", "z").above(2)) == (
        "the error of x is more than 2 times that of y and of z"
    )
    assert str(one) == "the error of x"


def test_a_rule_has_the_names_for_rules_in_names(monkeypatch):
    names = Names(
        {"m": Name("width", rule="size"), "error": "test error"},
        {
            "method": {"sgd": "trained", "a": Name("A", rule="method A")},
            "series": {"sgd": Name("SGD\non all", rule="all of\nSGD"), ("a", "b"): "either"},
            "top": {"a": Name("a", rule="the upper one")},
        },
        {"m <= d ** 2": "m is small", "fit": "all networks fit"},
    )
    monkeypatch.setattr(quantities, "names_in", lambda package: names)
    rule = ratio("sgd", ("a",), "m <= d ** 2").given("fit").above(1)
    assert said(rule) == (
        "all of SGD / method A is above 1 for every d and size, where m is small and all networks"
        " fit"
    )
    assert said(ratio("a", ("a", "b"), "m > 1").above(1)).startswith("the upper one / either is")
    assert said(ratio("error", ("c_d",), "x == 'sgd'").above(1)) == (
        "test error / c d is above 1 for every d and size, where x = all of SGD"
    )


def test_a_point_has_the_name_for_rules_even_if_its_column_is_called_otherwise(monkeypatch):
    values = {"method": {"sgd": Name("SGD", rule="networks of SGD"), "a": "A"}}
    monkeypatch.setattr(quantities, "names_in", lambda package: Names({}, values))
    rows = pd.DataFrame({"d": ["sgd", "a"], "m": 1, "value": 1.0, "replicate": 0})
    assert ratio("a", (), "d > 0").above(0).places(rows) == {"networks of SGD, m = 1", "a, m = 1"}


def test_a_point_says_what_its_symbols_are(monkeypatch):
    names = Names({"m": "μ"}, symbols={"d": "target width", "μ": "size"})
    monkeypatch.setattr(quantities, "names_in", lambda package: names)
    rule = ratio("a", (), "d > 0").above(0)
    assert said(rule).endswith(" for every target width d and size μ, where d > 0")
    rows = pd.DataFrame({"d": [5], "m": 1, "value": 1.0, "replicate": 0})
    assert rule.places(rows) == {"target width d = 5, size μ = 1"}


def test_plain_data_alone_are_arguments():
    assert isinstance(ratio("sgd", (), "m < d"), Quantity)
    with pytest.raises(TypeError, match="where is no plain data"):
        ratio("sgd", (), lambda rows: rows)


def judged(rule: Rule, rows: pd.DataFrame) -> str:
    return verdict([*rule.points(rule.quantity.measure({"metrics": rows}))])[0]


def test_each_point_has_its_evidence():
    rows = pd.DataFrame({"d": [5, 10] * 5, "m": np.inf, "replicate": np.repeat(range(5), 2)})
    rows = rows.assign(error=rows["d"].astype(float))
    rule = ratio("a", (), "d > 0").above(7)
    points = [*rule.points(rule.quantity.measure({"metrics": rows}))]
    assert [each.point for each in points] == ["d = 5, m = ∞", "d = 10, m = ∞"]
    assert [each.estimate for each in points] == [5, 10] and points[0].unit == "ratio"


def test_a_column_of_a_table_is_no_standard_error():
    """Which would excuse every counterexample: a table may have a column of that name."""
    rows = pd.DataFrame({"replicate": range(5), "error": 1.0, "n": 3})
    assert judged(distance().always("<=", 1e-9), rows) == "fails"
