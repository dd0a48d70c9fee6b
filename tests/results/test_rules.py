"""What every rule has: a verdict that does what its printed text says, and a digest."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from runner.core.catalogue import figure_names, figure_study, paper_folder
from runner.core.papers import papers
from runner.results.claims import Claim, claims_of
from runner.results.digests import REGISTERED, without_words
from runner.results.evidence import Above, Always, Below, Within, verdict
from runner.results.quantities import Rule, Tables, quantity
from runner.results.sentences import bound_in_words

KEPT = [
    (name, claim)
    for name in figure_names()
    if paper_folder(figure_study(name)) in papers()
    for claim in claims_of(name, figure_study(name))
]
EVERY = [pytest.param(claim, id=f"{name}-{claim.name}") for name, claim in KEPT]
NUMBER = r"(−?\d+(?:\.\d+)?(?:e-?\d+)?)"
SAID = re.compile(
    r"(above|below|at most|at least|exactly|more than|less than|between)"
    rf" {NUMBER}(?: and {NUMBER})?"
)


def numbers(value: float) -> list[pd.DataFrame]:
    """Eight replicates of a value, and an estimate of it with a small error."""
    replicates = pd.DataFrame({"replicate": range(8), "value": value})
    return [replicates, pd.DataFrame({"value": [value], "error": 1e-12, "n": 20})]


def verdict_of(comparison, rows: pd.DataFrame) -> str:
    return verdict([comparison.evidence(rows)])[0]


def check_bound(printed: str, comparison) -> None:
    """Numbers just inside of what is printed hold, those just outside fail."""
    printed = printed.replace("larger than", "above 1").replace("smaller than", "below 1")
    words, *found = SAID.search(printed).groups()
    first, second = (float(each.replace("−", "-")) if each else 0.0 for each in found)
    step = 1e-3 * max(abs(first), 1e-6)
    step = min(step, (second - first) / 4) if words == "between" else step
    inside, outside = {
        "above": ([first + step], [first - step]),
        "more than": ([first + step], [first - step]),
        "less than": ([first - step], [first + step]),
        "at least": ([first, first + step], [first - step]),
        "below": ([first - step], [first + step]),
        "at most": ([first, first - step], [first + step]),
        "exactly": ([first], [first + step, first - step]),
        "between": ([first + step, second - step], [first - step, second + step]),
    }[words]
    for value, expected in [(v, "holds") for v in inside] + [(v, "fails") for v in outside]:
        for rows in numbers(value):
            if "replicate" in rows or not isinstance(comparison, Always):
                assert verdict_of(comparison, rows) == expected, (printed, value)


@pytest.mark.parametrize(
    ("comparison", "printed"),
    [
        (Above(0.25), "above 0.25"),
        (Below(-3.0), "below −3"),
        (Within(0.5, of=2.0), "between 1.5 and 2.5"),
        (Within(1e-9, of=1), "between 0.999999999 and 1.000000001"),
        (Within(1.4e-6, of=-1), "between −1.0000014 and −0.9999986"),
        (Above(1 + 1e-9), "above 1.000000001"),
        (Below(1 / 3), "below 0.333333"),
        (Always("<", 3), "below 3"),
        (Always("<=", 1e-8), "at most 1e-8"),
        (Always("=", 0), "exactly 0"),
        (Always(">=", 2), "at least 2"),
        (Always(">", -1), "above −1"),
    ],
    ids=str,
)
def test_each_comparison_does_what_it_says(comparison, printed):
    assert str(comparison) == printed
    check_bound(str(comparison), comparison)


@pytest.mark.parametrize("claim", EVERY)
def test_each_rule_does_what_it_says(claim):
    assert claim.printed and claim.statement and claim.source
    for rule in claim.rules:
        bound = bound_in_words(rule)
        assert bound.removesuffix(" times") in claim.printed
        if not isinstance(getattr(rule.comparison, "bound", 0), str):
            check_bound(bound, rule.shown)


def test_a_rule_about_logarithms_is_printed_as_one_about_ratios():
    """And means the same: 2 to a power above 0 is above 1."""

    @quantity("A is {} B", log2=True)
    def lead(tables: Tables): ...

    printed = [
        (lead().above(0), "larger than"),
        (lead().above(1), "more than 2 times"),
        (lead().below(-1), "less than 0.5 times"),
        (lead().within(1), "between 0.5 and 2 times"),
    ]
    for rule, bound in printed:
        assert bound_in_words(rule) == bound
        for power in (-1.1, -0.9, -0.1, 0.1, 0.9, 1.1):
            for logs, ratios in zip(numbers(power), numbers(2**power), strict=True):
                assert verdict_of(rule.comparison, logs) == verdict_of(rule.shown, ratios)


def test_an_alike_eight_decides_with_one_dissenter_and_not_with_two():
    """The exact sign test: 7 of 8, 10 of 13, 5 of 5 are the fewest that must agree."""
    for n, most in ((5, 0), (8, 1), (13, 3)):
        for dissent, expected in ((most, "holds"), (most + 1, "undecided")):
            values = [-1.0] * dissent + [1.0] * (n - dissent)
            rows = pd.DataFrame({"replicate": range(n), "value": values})
            assert verdict_of(Above(0), rows) == expected
            contrary = "fails" if expected == "holds" else expected
            assert verdict_of(Above(0), rows.assign(value=-rows["value"])) == contrary


@pytest.fixture
def error():
    """A quantity, as the `quantities.py` of a study defines it."""

    @quantity("error")
    def error(tables: Tables, fraction: float = 0.5): ...

    return error


def test_rules_keep_the_digests_under_which_they_were_registered():
    """The table has no other rules; a rule that changes loses its entry, which is then deleted."""
    table = pd.read_csv(REGISTERED)
    present = {without_words(claim.rules, claim.needs): claim.digest for _, claim in KEPT}
    entries = dict(zip(table["rule"], table["digest"], strict=True))
    assert table["rule"].is_unique and table["digest"].is_unique
    assert {rule: present.get(rule) for rule in entries} == entries


def test_words_are_not_in_a_digest(error):
    def digest(name: str) -> str:
        one = replace(error().above(1).quantity, name=name)
        return Claim("name", "statement", "source", one.above(1)).digest

    assert digest("error") == digest("the error is {} what it was")


def test_a_digest_changes_with_bounds_arguments_assumption_and_sizes(error):
    def digest(rule: Rule, **changes) -> str:
        return Claim("name", "statement", "source", rule, **changes).digest

    one = digest(error().above(1))
    assert one == digest(error().above(1), note="other words", kind="ours")
    others = [
        digest(error().above(1.0000001)),  # printed alike
        digest(error().below(1)),
        digest(error(0.25).above(1)),
        digest(error().given("fits").above(1)),
        digest([error().above(1), error().above(2)]),
        digest(error().above(1), needs={"d": 3}),
    ]
    assert len({one, *others}) == 7
