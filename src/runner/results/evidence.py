"""Test a statement at each point, and decide the verdict over all points.

A point is for example one width or one depth. A comparison (`Above`, `Below`, `Within`, `Always`)
tests the numbers of a point. It returns `Evidence`: an estimate with its limits, and two p-values.
`p_holds` is the probability of numbers at least as favorable if the statement is false. `p_fails`
is the probability of numbers at least as unfavorable if the statement is true. `verdict` combines
all points to *holds*, *fails* or *undecided*.

Numbers are the rows of a data frame. There are three kinds, which its columns distinguish:

- a `value` for each replicate: the exact sign test, without assumptions on the distribution. A
  diverged replicate (nan, inf) counts for neither side, or for the other side.
- a `value` with its standard `error` from `n` chains: Student's t test.
- a `count` of `n` cases: the exact binomial test.

If a replicate has several numbers, the test uses the least favorable one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from scipy.special import bdtr, betaincinv, stdtr, stdtrit

ERROR = 0.05
"""Largest probability of a wrong *holds*, and of a wrong *fails*."""

ROUNDING = 8 * float(np.finfo(float).eps)
"""Relative difference up to which two numbers count as equal."""

CLOSE = 0.9
"""Numbers of at least CLOSE are printed with three digits, smaller numbers with two: many bounds
are near one."""

Verdict = Literal["holds", "fails", "undecided"]

Unit = Literal["difference", "ratio", "exponent", "share", "slope", "value"]
"""The kinds of estimates."""


@dataclass(frozen=True)
class Evidence:
    """The result of a statistical test of a statement at one point.

    - estimate: the measured median, estimate or fraction;
    - low, high: limits of the estimate, each with a one-sided error of 5 %;
    - p_holds: the probability of numbers at least as favorable if the statement is false;
    - p_fails: the probability of numbers at least as unfavorable if the statement is true;
    - point: the point in words, such as `d = 5`.
    """

    estimate: float
    low: float
    high: float
    n: int
    """How many independent numbers are tested: replicates, chains or blocks."""
    p_holds: float
    p_fails: float
    bound: float = np.nan
    """The number with which the estimate is compared."""
    needed: int = 2
    """The smallest n with which the statement could hold."""
    unit: Unit = "value"
    point: str = ""
    quantity: str = ""
    """The name of the measured quantity."""
    of: str = "replicates"
    """What `n` counts, in the plural."""
    compared: str = ""
    """The bound in words: `above 0.9`."""
    unknown: int = 0
    """How many of the n numbers are nan."""
    is_log2: bool = False
    """Whether the numbers are binary logarithms of ratios. Texts then have the ratios."""
    extreme: str = ""
    """For a relation of every number: the number nearest to the bound or farthest beyond it, in
    words, `at most 0.4` or `up to 5`."""

    @property
    def distance(self) -> float:
        """Return the distance of the estimate from its bound.

        For ratios, the distance is the difference of the logarithms.
        """
        with np.errstate(all="ignore"):
            if self.unit == "ratio":
                return float(np.abs(np.log(self.estimate / self.bound)))
            return float(np.abs(self.estimate - self.bound))


def verdict(points: Sequence[Evidence]) -> tuple[Verdict, Evidence | None]:
    """Return the verdict over all points, and the evidence at the point that decides it.

    - *holds*: `p_holds` is at most ERROR at every point (an intersection-union test, which needs no
      correction). The point with the largest `p_holds` decides.
    - *fails*: the smallest `p_fails` is at most ERROR divided by the number of points (Holm's
      correction). The point with this `p_fails` decides.
    - *undecided*: in all other cases. The point with the largest `p_holds` is returned.

    Among equal p-values, the point nearest to its bound decides *holds*, and the farthest decides
    *fails*. Without points the result is "undecided" and None.
    """
    if not points:
        return "undecided", None
    weakest = max(points, key=lambda point: (point.p_holds, -point.distance))
    strongest = min(points, key=lambda point: (point.p_fails, -point.distance))
    if weakest.p_holds <= ERROR:
        return "holds", weakest
    if strongest.p_fails <= ERROR / len(points):  # Holm's first step
        return "fails", strongest
    return "undecided", weakest


@dataclass(frozen=True)
class Above:
    """The comparison that the median, estimate or fraction at a point is above a bound.

    bound: a number, or a formula of the point's columns, such as "1 - 1 / d".
    """

    bound: float | str

    def __str__(self) -> str:
        return f"above {_in_words(self.bound)}"

    def evidence(self, rows: pd.DataFrame) -> Evidence:
        """Test the comparison on the rows of one point; return estimate, limits and p-values.

        rows: the column `value` of each `replicate`, or `value` with `error` and `n`, or `value`
        with `count` and `n`.
        """
        return _test(_worst(rows, -rows["value"]), self.bound)


@dataclass(frozen=True)
class Below:
    """The comparison that the median, estimate or fraction at a point is below a bound.

    bound: a number, or a formula of the point's columns, such as "1 - 1 / d".
    """

    bound: float | str

    def __str__(self) -> str:
        return f"below {_in_words(self.bound)}"

    def evidence(self, rows: pd.DataFrame) -> Evidence:
        """Test the comparison on the rows of one point; return estimate, limits and p-values.

        rows: the column `value` of each `replicate`, or `value` with `error` and `n`, or `value`
        with `count` and `n`.
        """
        return _contrary(_test(_worst(rows, rows["value"]), self.bound))


@dataclass(frozen=True)
class Within:
    """The comparison that the median or estimate at a point is within `margin` of `of`.

    It holds if two one-sided tests hold, one for each side. The opposite is a larger difference. It
    is tested with half the error on each side. Five replicates cannot refute an equivalence: even
    if all are beyond the margin, p is 2 × 0.5⁵ > 0.05. A sign test of fewer than six replicates
    therefore decides nothing.
    """

    margin: float
    of: float = 0.0

    def __str__(self) -> str:
        low, high = self.of - self.margin, self.of + self.margin
        return f"between {_bound(low, self.margin)} and {_bound(high, self.margin)}"

    def evidence(self, rows: pd.DataFrame) -> Evidence:
        """Test the comparison on the rows of one point; return estimate, limits and p-values.

        rows: the column `value` of each `replicate`, or `value` with `error` and `n`, or `value`
        with `count` and `n`.
        """
        farthest = _worst(rows, (rows["value"] - self.of).abs())
        upper = Below(self.of + self.margin).evidence(farthest)
        lower = Above(self.of - self.margin).evidence(farthest)
        needed = replicates_needed(tests=2)
        if {"error", "count"}.isdisjoint(rows.columns) and upper.n < needed:
            return replace(upper, p_holds=1.0, p_fails=1.0, needed=needed)
        return replace(
            upper,
            p_holds=max(upper.p_holds, lower.p_holds),
            p_fails=min(1.0, 2 * min(upper.p_fails, lower.p_fails)),
        )


@dataclass(frozen=True)
class Always:
    """The comparison that every number at a point satisfies a relation, such as `<= 1`.

    It is meant for theorems and exact equalities. One counterexample refutes the statement. If
    numbers have an `error`, a counterexample must be off by more than it.

    The statement holds if no replicate has a counterexample and there are enough replicates. Enough
    means: if half of all networks were counterexamples, one would have appeared. The estimate is
    the fraction of replicates whose numbers all satisfy the relation. A nan neither refutes nor
    supports the statement.
    """

    relation: Literal["<", "<=", "=", ">=", ">"]
    bound: float

    WORDS: ClassVar = {
        "<": "below",
        "<=": "at most",
        "=": "exactly",
        ">=": "at least",
        ">": "above",
    }

    def __str__(self) -> str:
        return f"{self.WORDS[self.relation]} {_bound(self.bound)}"

    def evidence(self, rows: pd.DataFrame) -> Evidence:
        """Test the relation on the rows of one point; return estimate, limits and p-values.

        rows: the columns `replicate`, `value` and perhaps `error`; a replicate may have several
        rows.
        """
        satisfied = self.satisfied(rows)
        refuted = bool((satisfied == 0).any())
        replicates = satisfied.groupby(rows["replicate"]).agg(lambda group: group.min(skipna=False))
        evidence = _binomial(int((replicates == 1).sum()), len(replicates), 0.5)
        estimate = evidence.estimate if satisfied.notna().any() else np.nan
        p_holds = 1.0 if refuted else evidence.p_holds
        return replace(evidence, estimate=estimate, p_holds=p_holds, p_fails=float(not refuted))

    def extreme(self, rows: pd.DataFrame) -> str:
        """Return in words the number at a point that is nearest to the bound or farthest beyond it.

        Examples are `at most 3` of numbers that satisfy the relation, and `up to 5` of numbers that
        do not. The text is empty if there is no number.
        """
        value, error = rows["value"].astype(float), rows.get("error", 0.0)
        is_upper, is_equal = self.relation in ("<", "<="), self.relation == "="
        badness = (value - self.bound).abs() if is_equal else value - error
        badness = badness if is_upper or is_equal else -value - error
        if badness.isna().all():
            return ""
        worst = badness.idxmax()
        found, is_met = value[worst], bool(self.satisfied(rows)[worst])
        if is_equal or found == self.bound:
            return short(found)
        upper, lower = ("at most", "at least") if is_met else ("up to", "down to")
        return f"{upper if is_upper else lower} {short(found)}"

    def satisfied(self, rows: pd.DataFrame) -> pd.Series:
        """Return for each number 1 if it satisfies the relation, 0 if not, and nan if it is nan."""
        value, error = rows["value"].astype(float), rows.get("error", 0.0)
        at_most, at_least = value - error, value + error
        satisfied = {
            "<": at_most < self.bound,
            "<=": at_most <= self.bound,
            "=": (at_most <= self.bound) & (at_least >= self.bound),
            ">=": at_least >= self.bound,
            ">": at_least > self.bound,
        }[self.relation]
        return satisfied.astype(float).where(at_most.notna() & at_least.notna())


Comparison = Above | Below | Within | Always


def _worst(rows: pd.DataFrame, badness: pd.Series) -> pd.DataFrame:
    """Return the least favorable row of each replicate. A row without a number is the worst.

    badness: a number for each row; the largest is the least favorable.
    """
    if "replicate" not in rows or rows["replicate"].is_unique:
        return rows
    ordered = rows.assign(badness=badness.astype(float).fillna(np.inf)).sort_values("badness")
    return ordered.groupby("replicate").tail(1)


def _in_words(bound: float | str) -> str:
    if isinstance(bound, str):
        return bound.replace(" / ", "/").replace("-", "−")
    return _bound(bound)


def _bound(value: float, margin: float = np.inf) -> str:
    """Return a bound as text, with further digits beside a rounder number: `1.000000001`.

    margin: half the distance to another bound, from which the text must differ, too.
    """
    rounder = abs(value - float(f"{value:.3g}"))
    error = max(min(rounder, margin) / 10, ROUNDING * abs(value))
    texts = {digits: float(f"{value:.{digits}g}") for digits in range(6, 18)}
    return number(value, next((d for d in texts if abs(texts[d] - value) <= error), 6))


def number(value: float, digits: int = 6) -> str:
    """Return a number as text with at most `digits` significant digits: `0.25`, `−3`, `1.07e7`."""
    text = re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.{digits}g}")
    return re.sub("^-", "−", text)


def short(value: float) -> str:
    """Return a number with two digits, or with three if it is at least CLOSE."""
    return number(value, 3 if abs(value) >= CLOSE else 2)


def _test(rows: pd.DataFrame, bound: float | str) -> Evidence:
    """Test whether the numbers are above a bound; their columns determine the test."""
    if isinstance(bound, str):
        bound = float(rows.eval(bound).iloc[0])
    if np.isnan(bound):  # no number is above nan, or below
        return Evidence(np.nan, -np.inf, np.inf, len(rows), 1.0, 1.0, bound)
    if "error" in rows:
        if len(rows) > 1:
            raise ValueError(f"{len(rows)} estimates at one point")
        value, error, n = rows[["value", "error", "n"]].to_numpy(float)[0]
        return _students(value, error, n, bound)
    if "count" in rows:
        return _binomial(int(rows["count"].sum()), int(rows["n"].sum()), bound)
    return _sign(rows["value"].to_numpy(float), bound)


def _contrary(evidence: Evidence) -> Evidence:
    """Return the evidence for the contrary statement."""
    is_share = evidence.unit == "share"
    needed = _cases_needed(1 - evidence.bound) if is_share else evidence.needed
    return replace(evidence, p_holds=evidence.p_fails, p_fails=evidence.p_holds, needed=needed)


def _sign(values: np.ndarray, bound: float) -> Evidence:
    """Test by the exact sign test. A nan or a number at the bound counts for neither side."""
    n = len(values)
    low, high = median_limits(values)
    estimate = float(np.nanmedian(values)) if np.isfinite(values).any() else np.nan
    p_holds, p_fails = (
        at_least(int(count), n, 0.5) for count in ((values > bound).sum(), (values < bound).sum())
    )
    needed, unknown = replicates_needed(), int(np.isnan(values).sum())
    return Evidence(estimate, low, high, n, p_holds, p_fails, bound, needed=needed, unknown=unknown)


def _binomial(count: int, n: int, bound: float) -> Evidence:
    """Test by the exact binomial test, with the limits of Clopper and Pearson."""
    chance = min(max(bound, 0.0), 1.0)
    low = betaincinv(count, n - count + 1, ERROR) if count else 0.0
    high = betaincinv(count + 1, n - count, 1 - ERROR) if count < n else 1.0
    p_holds, p_fails = at_least(count, n, chance), at_least(n - count, n, 1 - chance)
    estimate, needed = count / n if n else np.nan, _cases_needed(chance)
    return Evidence(
        estimate, float(low), float(high), n, p_holds, p_fails, bound, needed, unit="share"
    )


def _cases_needed(chance: float) -> int:
    """Return how many cases must all agree, if one agrees with this chance under the contrary."""
    return int(np.ceil(np.log(ERROR) / np.log(chance))) if 0 < chance < 1 else 1


def _students(estimate: float, error: float, n: float, bound: float) -> Evidence:
    """Test by Student's t, n - 1 degrees of freedom. An error of zero or nan decides nothing."""
    if n < 2 or not (np.isfinite(estimate) and np.isfinite(error) and error > 0):
        return Evidence(estimate, -np.inf, np.inf, int(n), 1.0, 1.0, bound)
    reach = float(stdtrit(n - 1, 1 - ERROR)) * error
    t = (estimate - bound) / error
    p_holds, p_fails = float(stdtr(n - 1, -t)), float(stdtr(n - 1, t))
    return Evidence(estimate, estimate - reach, estimate + reach, int(n), p_holds, p_fails, bound)


def at_least(count: int, n: int, chance: float) -> float:
    """Return the probability of at least `count` successes in n trials.

    chance: the probability of success in one trial.
    """
    return float(bdtr(n - count, n, 1 - chance)) if count else 1.0


def median_limits(values: np.ndarray) -> tuple[float, float]:
    """Return the lower and the upper limit of the median of a distribution.

    values: samples of the distribution (n,). Each limit has a one-sided error of at most ERROR. The
    limits are two of the sorted samples (the inverse of the sign test). With fewer than five
    samples they are infinite. A nan counts as -inf for the lower limit, and as inf for the upper
    limit.
    """
    n = len(values)
    rank = sum(at_least(n - k, n, 0.5) <= ERROR for k in range(n)) - 1
    if rank < 0:
        return -np.inf, np.inf
    low = np.sort(np.where(np.isnan(values), -np.inf, values))[rank]
    high = np.sort(np.where(np.isnan(values), np.inf, values))[n - 1 - rank]
    return float(low), float(high)


def replicates_needed(tests: int = 1) -> int:
    """Return the smallest number of replicates with which a sign test can decide.

    tests: how many sign tests share the error ERROR.
    """
    return int(np.ceil(np.log2(tests / ERROR)))


def slopes(table: pd.DataFrame, x: str, y: str, *, log: bool = False) -> pd.Series:
    """Return the slope of y in x by least squares, for each replicate.

    x, y: names of columns; the table also has the column `replicate`. log: whether log y is fitted
    to log x; the slope is then an exponent. The slope is nan if x has only one value, or a number
    is nan.
    """
    columns = table[["replicate", x, y]].astype(float)
    with np.errstate(all="ignore"):
        across, along = (np.log(columns[c]) if log else columns[c] for c in (x, y))
        by = columns["replicate"]
        ends = across.groupby(by).agg(["min", "max"])
        differ = ends["max"] - ends["min"] > ROUNDING * ends.abs().max(axis=1)
        across = across - across.groupby(by).transform("mean")
        along = along - along.groupby(by).transform("mean")
        square = (across**2).groupby(by).sum().where(differ & ~along.isna().groupby(by).any())
        return (across * along).groupby(by).sum() / square


def slope_of_estimates(
    x: np.ndarray, estimates: np.ndarray, errors: np.ndarray
) -> tuple[float, float]:
    """Return the slope of estimates in x by weighted least squares, and its standard error.

    x, estimates, errors: arrays (n,); errors are the standard errors of the estimates. The weights
    and the standard error of the slope depend only on these errors, not on the residuals of the
    fit.
    """
    weights = 1 / np.square(errors)
    centred = x - np.sum(weights * x) / weights.sum()
    square = np.sum(weights * centred**2)
    return float(np.sum(weights * centred * estimates) / square), float(square**-0.5)
