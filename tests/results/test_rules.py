"""What every rule has: the text that is kept, a verdict that does what the text says, its numbers.

`outputs/reference/rules.csv` and `judged.csv.xz` are under version control: whatever is altered in
a rule changes one of them. `python -m runner reference judge` writes both anew.
"""

import re

import pandas as pd
import pytest
from runner.results.rules import code_of, digest

from runner.core.catalogue import figure_names, figure_study, paper_folder
from runner.core.papers import PAPERS
from runner.publish.plan import rules
from runner.publish.reference import JUDGED, REFERENCE, RULES, kept_tables, numbers_judged
from runner.results.claims import claims_of
from runner.results.evidence import Above, Always, Below, Within, verdict
from runner.results.quantities import Rule

KEPT = [
    (name, claim)
    for name in figure_names()
    if paper_folder(figure_study(name)) in PAPERS
    for claim in claims_of(name, figure_study(name))
]
EVERY = [pytest.param(claim, id=f"{name}-{claim.name}") for name, claim in KEPT]
NUMBER = r"(−?\d+(?:\.\d+)?(?:e-?\d+)?)"
SAID = re.compile(rf"(within|above|below|at most|at least|exactly) {NUMBER}(?: of {NUMBER})?")


def test_every_rule_is_as_kept():
    """Where this fails on purpose: `python -m runner reference judge`."""
    kept = pd.read_csv(REFERENCE / RULES, keep_default_na=False)
    both = rules().merge(kept, how="outer", indicator="side").query("side != 'both'")
    assert not len(both), both.to_string()


def test_every_number_that_is_judged_is_as_kept():
    kept = pd.read_csv(REFERENCE / JUDGED)
    now = numbers_judged(kept_tables(REFERENCE))
    now["point"] = now["point"].replace("", None)
    pd.testing.assert_frame_equal(now, kept, check_dtype=False, rtol=1e-5, atol=1e-14)


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


# Digests


@pytest.fixture
def a_rule(tmp_path, monkeypatch):
    """The digest of a rule whose quantity stands in a module with this text."""

    def made(text: str, bound: float = 1, needs=None) -> str:
        code_of.cache_clear()
        monkeypatch.setattr("runner.results.rules.source_of", lambda name: text)
        namespace = {"__name__": "own_studies.quantities"}
        exec(text, namespace)
        return digest([namespace["error"](0.5).above(bound)], needs or {})

    yield made
    code_of.cache_clear()


TEXT = '''
from runner.results.quantities import Tables, quantity

FACTOR = 2

def helper(tables):
    """Words."""
    return tables["metrics"].fillna(0)  # why

def unused(tables):
    return 3

@quantity()
def error(tables: Tables, share: float):
    """error"""
    return helper(tables)["error"] * FACTOR
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fillna(0)", "fillna(1)"),
        ("FACTOR = 2", "FACTOR = 3"),
        ('["error"] *', '["loss"] *'),
    ],
)
def test_a_digest_changes_with_whatever_is_measured(a_rule, old, new):
    assert old in TEXT
    assert a_rule(TEXT) != a_rule(TEXT.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Words."""', '"""Others."""'),
        ("  # why", ""),
        ("return 3", "return 4"),
        ("(tables: Tables, share: float)", "(tables, share)"),
        ('"""error"""', '"""the error"""'),
        ("\n\ndef unused", "\n\n\n\ndef unused"),
    ],
)
def test_words_layout_and_what_is_not_used_are_no_part_of_a_digest(a_rule, old, new):
    assert old in TEXT
    assert a_rule(TEXT) == a_rule(TEXT.replace(old, new))


def test_a_digest_changes_with_what_is_decided(a_rule):
    assert a_rule(TEXT) == a_rule(TEXT)
    assert len({a_rule(TEXT), a_rule(TEXT, 2), a_rule(TEXT, needs={"d": 3})}) == 3
