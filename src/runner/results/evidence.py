"""What numbers say for a statement and against it, and the verdict over all points of a statement.

A comparison (`Above`, `Below`, `Within`, `Always`) judges the numbers of one point (one width, one
depth) and gives its `Evidence`: an estimate with its limits, and two p-values. `p_holds` is the
probability of numbers as favorable as these if the statement is false, `p_fails` that of numbers
as unfavorable if it is true. `verdict` makes *holds*, *fails* or *undecided* of all points.

Numbers are the rows of a frame: a `value` for each replicate, judged by the exact sign test, which
asks nothing of their distribution (a diverged replicate, nan or inf, speaks for nobody, or for the
other side); a `value` with its standard `error` from `n` chains, by Student's t; or a `count` of
`n` cases, by the exact binomial test. Of several numbers of a replicate the worst speaks: the one
that is least as the comparison has it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from scipy.special import bdtr, betaincinv, stdtr, stdtrit

ERROR = 0.05
"""Largest probability of each verdict but *undecided* where it is wrong."""

ROUNDING = 8 * float(np.finfo(float).eps)
"""Relative difference up to which two numbers are one: their mean may differ from both by less."""

Verdict = Literal["holds", "fails", "undecided"]

Unit = Literal["difference", "ratio", "exponent", "share", "slope", "value"]
"""What an estimate is."""


@dataclass(frozen=True)
class Evidence:
    """What the numbers say of a statement at one point.

    low and high are the limits of the estimate, each of one-sided error 5 % as in the rule: the
    statement holds at the point when its bound is beyond them.
    """

    estimate: float
    low: float
    high: float
    n: int
    """Independent numbers of the test: replicates, chains or blocks."""
    p_holds: float
    p_fails: float
    bound: float = np.nan
    """What the estimate is compared with."""
    needed: int = 2
    """The fewest such numbers that could decide."""
    unit: Unit = "value"
    point: str = ""
    quantity: str = ""
    """The name of what was measured."""
    of: str = "replicates"
    """What `n` counts."""

    @property
    def distance(self) -> float:
        """How far the estimate is from its bound; of a ratio, the logarithm of the factor."""
        with np.errstate(all="ignore"):
            if self.unit == "ratio":
                return float(np.abs(np.log(self.estimate / self.bound)))
            return float(np.abs(self.estimate - self.bound))


def verdict(points: Sequence[Evidence]) -> tuple[Verdict, Evidence | None]:
    """Return the verdict over all points, and the point that decides it.

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


@dataclass(frozen=True)
class Above:
    """The numbers of a point are above a bound: their median, estimate or share.

    bound: a number, or one of the point's own, as "1 - 1 / d" of its columns.
    """

    bound: float | str

    def __str__(self) -> str:
        return f"above {_in_words(self.bound)}"

    def evidence(self, rows: pd.DataFrame) -> Evidence:
        """Of the rows of one point."""
        return _test(_worst(rows, -rows["value"]), self.bound)


@dataclass(frozen=True)
class Below:
    """The contrary of `Above`."""

    bound: float | str

    def __str__(self) -> str:
        return f"below {_in_words(self.bound)}"

    def evidence(self, rows: pd.DataFrame) -> Evidence:
        """Of the rows of one point."""
        return _contrary(_test(_worst(rows, rows["value"]), self.bound))


@dataclass(frozen=True)
class Within:
    """The numbers of a point differ from `of` by less than a margin: two one-sided tests.

    The contrary, a median beyond the margin on either side, is tested at half the error each.
    """

    margin: float
    of: float = 0.0

    def __str__(self) -> str:
        return f"within {number(self.margin)} of {number(self.of)}"

    def evidence(self, rows: pd.DataFrame) -> Evidence:
        """Of the rows of one point."""
        farthest = _worst(rows, (rows["value"] - self.of).abs())
        upper = Below(self.of + self.margin).evidence(farthest)
        lower = Above(self.of - self.margin).evidence(farthest)
        return replace(
            upper,
            p_holds=max(upper.p_holds, lower.p_holds),
            p_fails=min(1.0, 2 * min(upper.p_fails, lower.p_fails)),
        )


@dataclass(frozen=True)
class Always:
    """Every number of a point is so: a theorem, an exact equality.

    One counterexample refutes it, one beyond its own `error` where numbers have errors. It holds
    when no replicate has one and they are so many that, if half of all networks were some, they
    would have shown one. The estimate is the share of replicates whose numbers are all so. A nan is
    no counterexample, and its replicate does not count for the statement.
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
        return f"always {self.WORDS[self.relation]} {number(self.bound)}"

    def evidence(self, rows: pd.DataFrame) -> Evidence:
        """Of the rows of one point, which may be many for a replicate."""
        satisfied = self.satisfied(rows)
        refuted = bool((satisfied == 0).any())
        every = satisfied.groupby(rows["replicate"]).agg(lambda each: each.min(skipna=False))
        found = _binomial(int((every == 1).sum()), len(every), 0.5)
        estimate = found.estimate if satisfied.notna().any() else np.nan
        p_holds = 1.0 if refuted else found.p_holds
        return replace(found, estimate=estimate, p_holds=p_holds, p_fails=float(not refuted))

    def satisfied(self, rows: pd.DataFrame) -> pd.Series:
        """Return 1 where a number is so, 0 where it is not, and nan where it is not a number."""
        value, error = rows["value"].astype(float), rows.get("error", 0.0)
        at_most, at_least = value - error, value + error
        so = {
            "<": at_most < self.bound,
            "<=": at_most <= self.bound,
            "=": (at_most <= self.bound) & (at_least >= self.bound),
            ">=": at_least >= self.bound,
            ">": at_least > self.bound,
        }[self.relation]
        return so.astype(float).where(at_most.notna() & at_least.notna())


Comparison = Above | Below | Within | Always


def _worst(rows: pd.DataFrame, badness: pd.Series) -> pd.DataFrame:
    """Of each replicate the row that is worst, or one without a number if there is one."""
    if "replicate" not in rows or rows["replicate"].is_unique:
        return rows
    ordered = rows.assign(badness=badness.astype(float).fillna(np.inf)).sort_values("badness")
    return ordered.groupby("replicate").tail(1)


def _in_words(bound: float | str) -> str:
    return bound.replace(" / ", "/") if isinstance(bound, str) else number(bound)


def number(value: float, digits: int = 6) -> str:
    """Write a number with so many digits at most: `0.25`, `−3`, `1.07e7`, `1e-9`."""
    text = re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.{digits}g}")
    return re.sub("^-", "−", text)


def _test(rows: pd.DataFrame, bound: float | str) -> Evidence:
    """Test whether the numbers are above a bound, in the way that their columns ask for."""
    if isinstance(bound, str):
        bound = float(rows.eval(bound).iloc[0])
    if np.isnan(bound):  # nothing is above it, and nothing below
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
    return replace(evidence, p_holds=evidence.p_fails, p_fails=evidence.p_holds)


def _sign(values: np.ndarray, bound: float) -> Evidence:
    """By the exact sign test. A nan or a number at the bound speaks for neither side."""
    n = len(values)
    low, high = median_limits(values)
    estimate = float(np.nanmedian(values)) if np.isfinite(values).any() else np.nan
    p_holds, p_fails = (
        at_least(int(count), n, 0.5) for count in ((values > bound).sum(), (values < bound).sum())
    )
    return Evidence(estimate, low, high, n, p_holds, p_fails, bound, needed=replicates_needed())


def _binomial(count: int, n: int, bound: float) -> Evidence:
    """By the exact binomial test, with the limits of Clopper and Pearson."""
    chance = min(max(bound, 0.0), 1.0)
    low = betaincinv(count, n - count + 1, ERROR) if count else 0.0
    high = betaincinv(count + 1, n - count, 1 - ERROR) if count < n else 1.0
    p_holds, p_fails = at_least(count, n, chance), at_least(n - count, n, 1 - chance)
    needed = int(np.ceil(np.log(ERROR) / np.log(chance))) if 0 < chance < 1 else 1
    estimate = count / n if n else np.nan
    return Evidence(
        estimate, float(low), float(high), n, p_holds, p_fails, bound, needed, unit="share"
    )


def _students(estimate: float, error: float, n: float, bound: float) -> Evidence:
    """Student's t with n - 1 degrees of freedom. An error of zero or nan decides nothing."""
    if n < 2 or not (np.isfinite(estimate) and np.isfinite(error) and error > 0):
        return Evidence(estimate, -np.inf, np.inf, int(n), 1.0, 1.0, bound)
    reach = float(stdtrit(n - 1, 1 - ERROR)) * error
    t = (estimate - bound) / error
    p_holds, p_fails = float(stdtr(n - 1, -t)), float(stdtr(n - 1, t))
    return Evidence(estimate, estimate - reach, estimate + reach, int(n), p_holds, p_fails, bound)


def at_least(count: int, n: int, chance: float) -> float:
    """Return the probability of at least so many successes in n trials of this chance each."""
    return float(bdtr(n - count, n, 1 - chance)) if count else 1.0


def median_limits(values: np.ndarray) -> tuple[float, float]:
    """Return the lower and the upper limit of a median, each of one-sided error at most ERROR.

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
    """Return the fewest replicates by which a sign test can decide at one of so many points."""
    return int(np.ceil(np.log2(points / ERROR)))


def slopes(table: pd.DataFrame, x: str, y: str, *, log: bool = False) -> pd.Series:
    """Return the slope of y in x by least squares, for each replicate of a table; nan for one x.

    log: of log y in log x, the exponent.
    """
    columns = table[["replicate", x, y]].astype(float)
    with np.errstate(all="ignore"):
        across, along = (np.log(columns[c]) if log else columns[c] for c in (x, y))
        by = columns["replicate"]
        ends = across.groupby(by).agg(["min", "max"])
        differ = ends["max"] - ends["min"] > ROUNDING * ends.abs().max(axis=1)
        across = across - across.groupby(by).transform("mean")
        along = along - along.groupby(by).transform("mean", skipna=False)
        square = (across**2).groupby(by).sum()
        return (across * along).groupby(by).sum(skipna=False) / square.where(differ)


def slope_of_estimates(
    x: np.ndarray, estimates: np.ndarray, errors: np.ndarray
) -> tuple[float, float]:
    """Return the slope of estimates in x, each weighted by its own standard error, and its error.

    The error comes from the errors of the estimates, never from the residuals of the fit.
    """
    weights = 1 / np.square(errors)
    centred = x - np.sum(weights * x) / weights.sum()
    square = np.sum(weights * centred**2)
    return float(np.sum(weights * centred * estimates) / square), float(square**-0.5)
