"""What every rule has: a verdict that does what its printed text says, and a digest."""

import re

import pandas as pd
import pytest

from runner.core.catalogue import figure_names, figure_study, paper_folder
from runner.core.papers import papers
from runner.results.claims import Claim, claims_of
from runner.results.evidence import Above, Always, Below, Within, verdict
from runner.results.quantities import Rule, Tables, quantity

KEPT = [
    (name, claim)
    for name in figure_names()
    if paper_folder(figure_study(name)) in papers()
    for claim in claims_of(name, figure_study(name))
]
EVERY = [pytest.param(claim, id=f"{name}-{claim.name}") for name, claim in KEPT]
NUMBER = r"(−?\d+(?:\.\d+)?(?:e-?\d+)?)"
SAID = re.compile(rf"(within|above|below|at most|at least|exactly) {NUMBER}(?: of {NUMBER})?")


def numbers(value: float) -> list[pd.DataFrame]:
    """Eight replicates of a value, and an estimate of it with a small error."""
    replicates = pd.DataFrame({"replicate": range(8), "value": value})
    return [replicates, pd.DataFrame({"value": [value], "error": 1e-12, "n": 20})]


def verdict_of(comparison, rows: pd.DataFrame) -> str:
    return verdict([comparison.evidence(rows)])[0]


def check_bound(rule: Rule | Above | Below | Within | Always, comparison) -> None:
    """Numbers just inside of what is printed hold, those just outside fail."""
    printed = str(rule).removeprefix(str(getattr(rule, "quantity", "")))
    words, *found = SAID.search(printed).groups()
    first, second = (float(each.replace("−", "-")) if each else 0.0 for each in found)
    step = 1e-3 * max(abs(first), 1e-6)
    inside, outside = {
        "above": ([first + step], [first - step]),
        "at least": ([first, first + step], [first - step]),
        "below": ([first - step], [first + step]),
        "at most": ([first, first - step], [first + step]),
        "exactly": ([first], [first + step, first - step]),
        "within": (
            [second, second + first - step, second - first + step],
            [second + first + step, second - first - step],
        ),
    }[words]
    for value, expected in [(v, "holds") for v in inside] + [(v, "fails") for v in outside]:
        for rows in numbers(value):
            if "replicate" in rows or not isinstance(comparison, Always):
                assert verdict_of(comparison, rows) == expected, (str(rule), value)


@pytest.mark.parametrize(
    ("comparison", "printed"),
    [
        (Above(0.25), "above 0.25"),
        (Below(-3.0), "below −3"),
        (Within(0.5, of=2.0), "within 0.5 of 2"),
        (Always("<", 3), "always below 3"),
        (Always("<=", 1e-8), "always at most 1e-8"),
        (Always("=", 0), "always exactly 0"),
        (Always(">=", 2), "always at least 2"),
        (Always(">", -1), "always above −1"),
    ],
    ids=str,
)
def test_each_comparison_does_what_it_says(comparison, printed):
    assert str(comparison) == printed
    check_bound(comparison, comparison)


@pytest.mark.parametrize("claim", EVERY)
def test_each_rule_does_what_it_says(claim):
    assert claim.printed and claim.statement and claim.source
    for rule in claim.rules:
        if not isinstance(getattr(rule.comparison, "bound", 0), str):
            check_bound(rule, rule.comparison)


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


def test_a_digest_changes_with_what_is_printed_its_bounds_arguments_and_sizes(error):
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
