"""The judge is calibrated: simulated tables without an effect, with it, and with the contrary."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from runner.results.evidence import (
    Above,
    Always,
    Below,
    Evidence,
    Within,
    median_limits,
    replicates_needed,
    slope_of_estimates,
    slopes,
    verdict,
)

TABLES = 600
"""Simulated tables of each kind without an effect."""

MANY = 8_000
"""Of the kinds whose error is 5 % exactly, not at most."""

FEW = 200
"""With one."""

REPLICATES = 5
EFFECT = 2.0
"""Of the simulated effects, in standard deviations of a replicate."""


def numbers(values) -> pd.DataFrame:
    """A number for each replicate."""
    values = np.asarray(values, dtype=float)
    return pd.DataFrame({"replicate": range(len(values)), "value": values})


def above(values, bound=0.0) -> Evidence:
    return Above(bound).evidence(numbers(values))


def estimate(blocks) -> pd.DataFrame:
    error = blocks.std(ddof=1) / np.sqrt(len(blocks))
    return pd.DataFrame({"value": [blocks.mean()], "error": [error], "n": [len(blocks)]})


def share(count, n, bound) -> Evidence:
    return Above(bound).evidence(pd.DataFrame({"value": [count / n], "count": [count], "n": [n]}))


def normal(rng, shift):
    return rng.standard_normal(REPLICATES) + shift


def heavy(rng, shift):
    return rng.standard_cauchy(REPLICATES) / 6 + shift


def skewed(rng, shift):
    """Median zero, with a long tail."""
    return np.expm1(rng.standard_normal(REPLICATES) + shift)


def of_medians(draw):
    return lambda rng, shift: [above(draw(rng, shift))]


def of_pairs(rng, shift):
    """Two methods on the same replicates, whose targets differ by far more than they do."""
    target = pd.Series(10 * rng.standard_normal(REPLICATES))
    other = target + rng.standard_normal(REPLICATES) + shift
    return [above(other - target)]


def of_ratios(rng, shift):
    lower = pd.Series(rng.lognormal(size=REPLICATES))
    noise = rng.lognormal(sigma=1.0, size=REPLICATES)
    return [above(lower * noise * np.exp(shift) / lower, 1.0)]


def of_equivalence(rng, shift):
    """A shift of zero stands at the margin of three, an effect inside it, the contrary outside."""
    return [Within(3.0).evidence(numbers(rng.standard_normal(2 * REPLICATES) / 2 + 3 - shift))]


def of_estimates(rng, shift):
    blocks = rng.standard_normal(20) * np.sqrt(20) + shift * 2
    return [Above(0.0).evidence(estimate(blocks))]


def of_estimates_within(rng, shift):
    blocks = rng.standard_normal(20) + 3 - shift
    return [Within(3.0).evidence(estimate(blocks))]


def of_exponents(rng, shift):
    """The exponent 1/2 + shift / 10 of a power law over three doublings."""
    size = np.tile([8.0, 16, 32, 64], REPLICATES)
    value = size ** (0.5 + shift / 10) * rng.lognormal(sigma=0.15, size=len(size))
    rows = {"replicate": np.repeat(np.arange(REPLICATES), 4), "size": size, "value": value}
    exponents = slopes(pd.DataFrame(rows), "size", "value", log=True)
    return [above(exponents, 0.5)]


def of_shares(rng, shift):
    return [share(rng.binomial(20, 0.5 + shift / 6), 20, 0.5)]


def of_points(rng, shift):
    """Three points, of which two hold beyond doubt: the third decides."""
    return [above(normal(rng, 9)), above(normal(rng, shift)), above(normal(rng, 9))]


KINDS = {
    "median": of_medians(normal),
    "median, heavy tails": of_medians(heavy),
    "median, skewed": of_medians(skewed),
    "pairs": of_pairs,
    "ratios": of_ratios,
    "equivalence": of_equivalence,
    "estimates": of_estimates,
    "estimates within": of_estimates_within,
    "exponents": of_exponents,
    "shares": of_shares,
    "several points": of_points,
}


def tables_of(kind):
    return MANY if kind.startswith("estimates") else TABLES


@cache
def counts(kind, shift, tables, seed=0):
    rng = np.random.default_rng(seed)
    verdicts = [verdict(KINDS[kind](rng, shift))[0] for _ in range(tables)]
    return {each: verdicts.count(each) for each in ("holds", "fails", "undecided")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_quarter_of_the_tables_shows_no_larger_error(kind):
    tables = tables_of(kind) // 4
    for decided in ("holds", "fails"):
        count = counts(kind, 0.0, tables)[decided]
        assert binomtest(count, tables).proportion_ci(0.95).low < 0.05


@pytest.mark.more
@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_each_wrong_verdict_has_a_probability_of_at_most_one_in_twenty(kind):
    tables = tables_of(kind)
    for decided in ("holds", "fails"):
        count = counts(kind, 0.0, tables)[decided]
        assert binomtest(count, tables).proportion_ci(0.95).high < 0.06


@pytest.mark.parametrize("kind", KINDS)
def test_an_effect_holds_and_the_contrary_fails_in_four_of_five(kind):
    assert counts(kind, EFFECT, FEW)["holds"] >= 0.8 * FEW
    if kind != "several points":
        assert counts(kind, -EFFECT, FEW)["fails"] >= 0.8 * FEW


def test_the_contrary_at_one_of_several_points_fails_with_enough_replicates():
    points = [above(np.ones(7)), above(-np.ones(7)), above(np.ones(7))]
    assert verdict(points)[0] == "fails"
    assert verdict([above(-np.ones(5)), above(np.ones(5))])[0] == "undecided"
    assert replicates_needed(1) == 5 and replicates_needed(3) == 6


def test_five_replicates_decide_no_equivalence_since_they_cannot_refute_one():
    for far in (0.0, 9.0):
        few, enough = (Within(1).evidence(numbers(np.full(n, far))) for n in (5, 6))
        assert verdict([few])[0] == "undecided" and few.needed == 6
        assert verdict([enough])[0] == ("fails" if far else "holds")
    assert verdict([Within(1).evidence(estimate(np.zeros(5) + np.arange(5) / 99))])[0] == "holds"


def test_points_that_are_all_at_their_bound_rarely_fail():
    rng = np.random.default_rng(1)
    tables = [[above(rng.standard_normal(9)) for _ in range(4)] for _ in range(TABLES)]
    failed = sum(verdict(points)[0] == "fails" for points in tables)
    assert binomtest(failed, TABLES).proportion_ci(0.95).high < 0.06


@pytest.mark.parametrize(
    ("few", "enough"), [(above(np.ones(4)), 5), (share(58, 58, 0.95), 59)], ids=["sign", "share"]
)
def test_too_few_numbers_decide_nothing_and_say_how_many_would(few, enough):
    assert verdict([few])[0] == "undecided" and few.needed == enough
    assert verdict([above(np.ones(5))])[0] == verdict([share(59, 59, 0.95)])[0] == "holds"
    assert verdict([]) == ("undecided", None)


def test_the_limits_and_the_verdict_agree():
    rng = np.random.default_rng(2)
    for n in (5, 6, 8, 11, 20):
        for _ in range(50):
            evidence = above(rng.standard_normal(n))
            assert (evidence.low > 0) == (evidence.p_holds <= 0.05)
            assert (evidence.high < 0) == (evidence.p_fails <= 0.05)
    assert median_limits(np.arange(5.0)) == (0.0, 4.0)
    assert median_limits(np.arange(4.0)) == (-np.inf, np.inf)


def test_a_diverged_replicate_speaks_for_nobody():
    values = np.array([1.0, 2, 3, 4, np.nan])
    below = Below(0.0).evidence(numbers(-values))
    assert verdict([above(values)])[0] == verdict([below])[0] == "undecided"
    assert above(values).low == -np.inf and above(values).high == np.inf
    assert verdict([above([np.inf] * 5)])[0] == "holds"


@pytest.mark.parametrize(
    ("satisfied", "expected"),
    [
        (np.ones(5), "holds"),
        (np.ones(4), "undecided"),
        ([1, 1, 0, 1, 1], "fails"),
        ([1, 1, 0, 1, np.nan], "fails"),
        ([], "undecided"),
    ],
)
def test_one_counterexample_refutes_a_statement_on_every_network(satisfied, expected):
    assert verdict([Always("=", 1).evidence(numbers(satisfied))])[0] == expected


def test_a_counterexample_counts_with_its_own_error():
    rows = numbers([1.0, 1, 1, 1, 0.86]).assign(error=0.0, n=3)
    assert verdict([Always(">", 0.9).evidence(rows)])[0] == "fails"
    rows["error"] = [0, 0, 0, 0, 0.11]
    assert verdict([Always(">", 0.9).evidence(rows)])[0] == "holds"
    rows["value"], rows["error"] = 0.86, 0.03
    assert verdict([Always(">", 0.9).evidence(rows)])[0] == "fails"


def test_of_several_numbers_of_a_replicate_the_worst_speaks():
    rows = pd.DataFrame(
        {"replicate": [0, 0, 1, 1, 2, 3, 4, 5], "value": [2.0, 0.5, 2, 3, 2, 2, 2, 2]}
    )
    for each in (Above(1), Below(2.9), Within(1, of=2.5)):
        assert each.evidence(rows).p_holds == pytest.approx(7 / 64)
    absent = rows.assign(value=rows["value"].replace(0.5, np.nan))
    assert Above(0).evidence(absent).p_holds == pytest.approx(7 / 64)


def test_a_bound_may_be_of_the_point():
    rows = pd.DataFrame({"value": [1.0], "count": [100], "n": [100], "d": [20]})
    found = Above("1 - 1 / d").evidence(rows)
    assert found.bound == 0.95 and verdict([found])[0] == "holds"
    assert str(Above("1 - 1 / d")) == "above 1 − 1/d"
    assert verdict([Above("1 - 1 / d").evidence(rows.assign(d=50))])[0] == "undecided"


def test_two_estimates_at_one_point_are_an_error():
    rows = pd.concat([estimate(np.arange(5.0))] * 2)
    with pytest.raises(ValueError, match="2 estimates at one point"):
        Above(0.0).evidence(rows)


def test_a_slope_of_estimates_has_the_error_of_the_estimates():
    x = np.array([0.0, 1, 2, 3])
    slope, error = slope_of_estimates(x, 2 * x + 1, np.full(4, 0.1))
    assert slope == pytest.approx(2) and error == pytest.approx(0.1 / np.sqrt(5))


def test_one_width_has_no_exponent():
    table = pd.DataFrame({"replicate": range(5), "size": 8.0, "value": 1.0})
    assert slopes(table, "size", "value", log=True).isna().all()


def test_the_extreme_of_a_relation_is_the_least_favorable_number():
    rows = pd.DataFrame({"replicate": range(3), "value": [1.0, 3.0, np.nan], "error": 0.5})
    assert Always("<=", 4).extreme(rows) == "at most 3"
    assert Always(">", 0).extreme(rows) == "at least 1"
    assert Always("=", 1).extreme(rows) == "3"
    assert Always("<=", 3).extreme(rows) == "3"
    assert Always("<=", 2).extreme(rows) == "up to 3"
    assert Always(">=", 2).extreme(rows) == "down to 1"
    assert Always("<=", 4).extreme(rows.assign(error=np.nan)) == ""
    assert Always("<=", 4).extreme(rows.assign(value=np.nan)) == ""
