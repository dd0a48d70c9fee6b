"""Tests of statements: what the numbers of a figure say for a statement, and against it.

Each function tests a statement at one point (one width, one depth, one pair of methods) and gives
its `Evidence`: an estimate with its limits, and two p-values. `p_holds` is the probability of
numbers as favourable as these if the statement is false, `p_fails` that of numbers as unfavourable
if it is true. `verdict` turns the evidence of all points into *holds*, *fails* or *undecided*.

Replicates are compared by the exact sign test: it asks nothing of their distribution but that they
are independent, and a diverged replicate (nan, or inf) speaks for nobody, or for the other side. It
takes five replicates to decide: (1/2)^5 < 5 %, (1/2)^4 is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import bdtr, betaincinv, stdtr, stdtrit

ERROR = 0.05
"""Largest probability of each verdict but *undecided* where it is wrong."""

Verdict = Literal["holds", "fails", "undecided"]

Unit = Literal["difference", "ratio", "exponent", "share", "slope", "value"]
"""What an estimate is."""


@dataclass(frozen=True)
class Evidence:
    """What the numbers say of a statement at one point.

    low and high are the limits of the estimate, each of one-sided error 5 % as in the rule: the
    statement holds at the point when its bound is beyond them.
    """

    point: str
    estimate: float
    low: float
    high: float
    unit: Unit
    n: int
    """Independent numbers that the test stands on: replicates, chains or blocks."""
    p_holds: float
    p_fails: float
    needed: int = 2
    """The fewest such numbers that could decide."""
    bound: float = np.nan
    """What the estimate is compared with."""

    @property
    def distance(self) -> float:
        """How far the estimate is from its bound; of a ratio, the logarithm of the factor."""
        with np.errstate(all="ignore"):
            if self.unit == "ratio":
                return float(np.abs(np.log(self.estimate / self.bound)))
            return float(np.abs(self.estimate - self.bound))


def verdict(points: Sequence[Evidence]) -> tuple[Verdict, Evidence | None]:
    """The verdict over all points, and the point that decides it.

    The statement holds when it holds at every point, each with error ERROR (an intersection-union
    test: no correction), and fails when it fails at one of them after Holm's correction. The point
    that decides is the weakest of those that hold, the strongest of those that fail (of equal
    p-values, that nearest to its bound, and that farthest from it); None where there are no points.
    """
    if not points:
        return "undecided", None
    weakest = max(points, key=lambda each: (each.p_holds, -each.distance))
    strongest = min(points, key=lambda each: (each.p_fails, -each.distance))
    if weakest.p_holds <= ERROR:
        return "holds", weakest
    if strongest.p_fails <= ERROR / len(points):  # Holm's first step: is there any
        return "fails", strongest
    return "undecided", weakest


def above(
    values: pd.Series | np.ndarray,
    bound: float = 0.0,
    *,
    point: str = "",
    unit: Unit = "value",
) -> Evidence:
    """Whether replicates are above a bound: their median, by the exact sign test.

    values: one number for each replicate. A nan or a number at the bound speaks for neither side.
    """
    numbers = np.asarray(values, dtype=float)
    n = len(numbers)
    low, high = median_limits(numbers)
    return Evidence(
        point,
        float(np.nanmedian(numbers)) if np.isfinite(numbers).any() else np.nan,
        low,
        high,
        unit,
        n,
        p_holds=at_least(int(np.sum(numbers > bound)), n, 0.5),
        p_fails=at_least(int(np.sum(numbers < bound)), n, 0.5),
        needed=replicates_needed(),
        bound=bound,
    )


def below(
    values: pd.Series | np.ndarray,
    bound: float = 0.0,
    *,
    point: str = "",
    unit: Unit = "value",
) -> Evidence:
    """Whether replicates are below a bound: the contrary of `above`."""
    return contrary(above(values, bound, point=point, unit=unit))


def contrary(evidence: Evidence) -> Evidence:
    """The same numbers on the contrary statement."""
    return replace(evidence, p_holds=evidence.p_fails, p_fails=evidence.p_holds)


def less(
    lower: pd.Series,
    higher: pd.Series,
    *,
    point: str = "",
    unit: Literal["difference", "ratio"] = "difference",
) -> Evidence:
    """Whether `lower` is below `higher`, replicate by replicate (both indexed by replicate).

    The estimate is the median of higher - lower, or of higher / lower (of numbers above zero). A
    replicate that one of the two lacks is left out; where one of them is nan it counts, for
    neither side.
    """
    common = lower.index.intersection(higher.index)
    lower, higher = lower[common].astype(float), higher[common].astype(float)
    with np.errstate(all="ignore"):
        if unit == "ratio":
            return above((higher / lower).to_numpy(), 1.0, point=point, unit=unit)
        return above((higher - lower).to_numpy(), point=point, unit=unit)


def equivalent(
    differences: pd.Series | np.ndarray,
    margin: float,
    *,
    point: str = "",
    unit: Unit = "difference",
) -> Evidence:
    """Whether replicates differ by less than a margin: two one-sided tests on their median.

    The contrary, a median beyond the margin on either side, is tested at half the error each.
    """
    upper = below(differences, margin, point=point, unit=unit)
    lower = above(differences, -margin, point=point, unit=unit)
    return replace(
        upper,
        p_holds=max(upper.p_holds, lower.p_holds),
        p_fails=min(1.0, 2 * min(upper.p_fails, lower.p_fails)),
    )


def everywhere(satisfied: pd.Series | np.ndarray, *, point: str = "") -> Evidence:
    """Whether a statement on every network (a theorem, an exact equality) holds.

    satisfied: for each replicate whether all its numbers satisfy the statement, up to rounding. One
    counterexample refutes it; it holds when no replicate has one and they are enough that, if half
    of all networks were counterexamples, they would have shown one. The estimate is the share of
    replicates, with its exact limits.
    """
    satisfied = np.asarray(satisfied, dtype=bool)
    evidence = share(int(satisfied.sum()), len(satisfied), 0.5, point=point)
    counterexample = len(satisfied) > 0 and not satisfied.all()
    return replace(
        evidence,
        p_holds=1.0 if counterexample else evidence.p_holds,
        p_fails=0.0 if counterexample else 1.0,
    )


def share(count: int, n: int, bound: float, *, point: str = "") -> Evidence:
    """Whether a statement is true in more than this share of cases: the exact binomial test.

    The limits are those of Clopper and Pearson.
    """
    low = betaincinv(count, n - count + 1, ERROR) if count else 0.0
    high = betaincinv(count + 1, n - count, 1 - ERROR) if count < n else 1.0
    return Evidence(
        point,
        count / n if n else np.nan,
        float(low),
        float(high),
        "share",
        n,
        p_holds=at_least(count, n, bound),
        p_fails=at_least(n - count, n, 1 - bound),
        needed=int(np.ceil(np.log(ERROR) / np.log(bound))),
        bound=bound,
    )


def at_least(count: int, n: int, chance: float) -> float:
    """The probability of at least so many successes in n trials of this chance each."""
    return float(bdtr(n - count, n, 1 - chance)) if count else 1.0


def estimate_above(
    estimate: float,
    error: float,
    bound: float = 0.0,
    *,
    n: int,
    point: str = "",
    unit: Unit = "value",
) -> Evidence:
    """Whether an estimate with a standard error is above a bound, by Student's t.

    n: how many independent chains or blocks the error comes from (n - 1 degrees of freedom). An
    error of zero or nan decides nothing.
    """
    if n < 2 or not (np.isfinite(estimate) and np.isfinite(error) and error > 0):
        return Evidence(
            point, estimate, -np.inf, np.inf, unit, n, p_holds=1.0, p_fails=1.0, bound=bound
        )
    reach = stdtrit(n - 1, 1 - ERROR) * error
    z = (estimate - bound) / error
    return Evidence(
        point,
        float(estimate),
        float(estimate - reach),
        float(estimate + reach),
        unit,
        n,
        p_holds=float(stdtr(n - 1, -z)),
        p_fails=float(stdtr(n - 1, z)),
        bound=bound,
    )


def estimate_below(
    estimate: float,
    error: float,
    bound: float = 0.0,
    *,
    n: int,
    point: str = "",
    unit: Unit = "value",
) -> Evidence:
    """Whether an estimate with a standard error is below a bound: the contrary."""
    return contrary(estimate_above(estimate, error, bound, n=n, point=point, unit=unit))


def estimate_within(
    estimate: float,
    error: float,
    centre: float,
    margin: float,
    *,
    n: int,
    point: str = "",
    unit: Unit = "value",
) -> Evidence:
    """Whether an estimate with a standard error is within a margin of a number: two tests."""
    options = {"n": n, "point": point, "unit": unit}
    upper = estimate_below(estimate, error, centre + margin, **options)
    lower = estimate_above(estimate, error, centre - margin, **options)
    return replace(
        upper,
        p_holds=max(upper.p_holds, lower.p_holds),
        p_fails=min(1.0, 2 * min(upper.p_fails, lower.p_fails)),
    )


def slopes(table: pd.DataFrame, x: str, y: str, *, log: bool = False) -> pd.Series:
    """The slope of y in x by least squares, for each replicate of a table; nan for one x.

    log: of log y in log x, the exponent.
    """
    columns = table[["replicate", x, y]].astype(float)
    with np.errstate(all="ignore"):
        across, along = (np.log(columns[c]) if log else columns[c] for c in (x, y))
        by = columns["replicate"]
        across = across - across.groupby(by).transform("mean")
        along = along - along.groupby(by).transform("mean", skipna=False)
        square = (across**2).groupby(by).sum()
        return (across * along).groupby(by).sum(skipna=False) / square.where(square > 0)


def slope_of_estimates(
    x: np.ndarray, estimates: np.ndarray, errors: np.ndarray
) -> tuple[float, float]:
    """The slope of estimates in x, each weighted by its own standard error, and its error.

    The error comes from the errors of the estimates, never from the residuals of the fit.
    """
    weights = 1 / np.square(errors)
    centred = x - np.sum(weights * x) / weights.sum()
    square = np.sum(weights * centred**2)
    return float(np.sum(weights * centred * estimates) / square), float(square**-0.5)


def median_limits(values: np.ndarray) -> tuple[float, float]:
    """The lower and the upper limit of a median, each of one-sided error at most ERROR.

    Order statistics, the inverse of the sign test; infinite with fewer than five values. A nan may
    be anything: it counts as -inf for the lower, as inf for the upper limit.
    """
    n = len(values)
    rank = sum(at_least(n - k, n, 0.5) <= ERROR for k in range(n)) - 1
    if rank < 0:
        return -np.inf, np.inf
    low = np.sort(np.where(np.isnan(values), -np.inf, values))[rank]
    high = np.sort(np.where(np.isnan(values), np.inf, values))[n - 1 - rank]
    return float(low), float(high)


def replicates_needed(points: int = 1) -> int:
    """The fewest replicates by which a sign test can decide at one of so many points."""
    return int(np.ceil(np.log2(points / ERROR)))
