"""Measure the networks that paper A's theorems construct.

d is the width of the target, p the fraction of nonzero weights. Rounding is the error that double
precision allows: equations × machine epsilon × condition number, summed over the linear systems of
a construction.
"""

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.constructions.tables import full_rank_by_sparsity, random_targets
from runner.results.quantities import Tables, quantity
from runner.results.rows import NoRows, nonempty, select

FAR = (1000, 2000, 5000, 10_000)
"""Widths d at which the closed formula nearly has its asymptotic exponent."""

SLACK = 0.005
"""Tolerance of p, which the runs state with two or three digits."""


def _rows(tables: Tables, theorem: str, dtype: str = "float64") -> pd.DataFrame:
    rows = tables["metrics"].rename(columns={"target_width": "d", "sparsity": "p"})
    rows = rows[rows["target"] != "convolution"]
    return nonempty(rows.query("theorem == @theorem and dtype == @dtype"), f"{theorem} networks")


@quantity(
    "largest |f(x) − g(x)| / (rounding + 16 machine epsilons × l), networks of {theorem}",
    needs={"target_width": 2},
)
def error_over_rounding(tables: Tables, theorem: str) -> pd.DataFrame:
    """l: number of layers of the target. In each layer about a dozen operations round, even at
    condition number 1.
    """
    return _over_rounding(_rows(tables, theorem))


def _over_rounding(rows: pd.DataFrame) -> pd.DataFrame:
    room = 16 * np.finfo(np.float64).eps * rows["depth"]
    return rows.assign(value=rows["max_abs_error"] / (rows["rounding"] + room))


@quantity(
    "largest |f(x) − g(x)| / (rounding + 16 machine epsilons), convolutions",
    needs={"target_width": 2},
)
def convolution_error(tables: Tables) -> pd.DataFrame:
    """Return one row per network whose target g is a layer of convolutions; `value` is the ratio. f is
    the network that the construction gives. The maximum is over the inputs x. rounding: the error
    that double precision can cause, estimated for this network.
    """
    return _over_rounding(select(tables["metrics"], target="convolution"))


@quantity(
    "largest |f(x) − g(x)|, networks of Theorem 2, computed with 100 digits", needs={"block": 2}
)
def error_with_digits(tables: Tables) -> pd.DataFrame:
    """f is the construction, and g the target."""
    rows = random_targets(_rows(tables, "deep", "mpmath"))
    if rows["rounding"].max() < 1:
        raise NoRows(
            "the estimated rounding error of double precision is below 1 in every network, so no"
            " network needs 100 digits"
        )
    return rows.eval("value = max_abs_error")


@quantity("full rank of K (1: yes, 0: no), networks of {theorem}", needs={"target_width": 2})
def full_rank(tables: Tables, theorem: str) -> pd.DataFrame:
    """K is the Khatri-Rao matrix of the construction's linear system."""
    return _rows(tables, theorem).eval("value = 1.0 * full_rank")


@quantity("d² − rank of K, at m = d² − 1 and p = 1")
def missing_rank(tables: Tables) -> pd.DataFrame:
    """K is the Khatri-Rao matrix of the construction's linear system."""
    rows = _rows(tables, "sparse").query("p == 1 and width == d ** 2 - 1")
    rows = nonempty(rows, "network with one unit less than d²")
    return rows.eval("value = d ** 2 - numerical_rank")


@quantity(
    "fraction of the 1,797 images for which classifier and construction predict the same class"
)
def agreement(tables: Tables) -> pd.DataFrame:
    """TODO"""
    rows = tables["metrics"].query("target == 'digits'")
    return nonempty(rows, "classifier was reconstructed").assign(value=rows["agreement"])


@quantity("numerical rank of K − structural rank of K", needs={"target_width": 2, "sparsity": 3})
def rank_difference(tables: Tables) -> pd.DataFrame:
    """K is the Khatri-Rao matrix of a sparse construction's linear system."""
    return _rows(tables, "sparse").eval("value = numerical_rank - structural_rank")


def _dense_enough(tables: Tables, constant: float, power: float) -> pd.DataFrame:
    rows = random_targets(_rows(tables, "sparse")).query("depth == 1 and width == d ** 2")
    least = constant * (np.log(rows["d"]) / rows["d"]) ** power
    dense = nonempty(rows[rows["p"] >= least - SLACK], "such p was drawn")
    # One p only: the draws of a replicate at several p are nested.
    return dense[dense["p"] == dense.groupby("d")["p"].transform("min")]


def _counts(rows: pd.DataFrame, success: pd.Series) -> pd.DataFrame:
    return success.groupby(rows["d"]).agg(count="sum", n="size").reset_index()


@quantity(
    "fraction of the K that have full rank, at the smallest p ≥ {constant} (log d / d)^{power}",
    each=("d",),
    numbers="counts",
    needs={"target_width": 3},
    of="draws",
)
def share_of_full_rank(tables: Tables, constant: float, power: float) -> pd.DataFrame:
    """K is the Khatri-Rao matrix of a sparse construction's linear system."""
    rows = _dense_enough(tables, constant, power)
    return _counts(rows, rows["full_rank"])


@quantity(
    "fraction with |f − g| ≤ rounding < 1, at the smallest p ≥ {constant} (log d / d)^{power}",
    each=("d",),
    numbers="counts",
    needs={"target_width": 3},
    of="draws",
)
def share_of_exact(tables: Tables, constant: float, power: float) -> pd.DataFrame:
    """f is a sparse construction, and g the target."""
    rows = _dense_enough(tables, constant, power)
    return _counts(rows, (rows["max_abs_error"] <= rows["rounding"]) & (rows["rounding"] < 1))


@quantity(
    "exponent a of the p ∝ (log d / d)^a at which half of the K have full rank ({blocks} blocks)",
    unit="exponent",
    numbers="estimates",
    of="blocks",
)
def threshold_exponent(tables: Tables, blocks: int) -> pd.DataFrame:
    """K is the Khatri-Rao matrix of a sparse construction's linear system. The standard error of a is
    estimated by the jackknife over blocks of replicates. Further columns have the exponents of the
    closed formula of `half_point`, over these d and over large d.
    """
    metrics = tables["metrics"]
    block, half = metrics["replicate"] % blocks, _half_points(metrics)
    without = np.array([_exponent(_half_points(metrics[block != one])) for one in range(blocks)])
    error = np.sqrt((blocks - 1) * without.var())
    of_formula = {"of_formula": half.index, "of_formula_far": FAR}
    slopes = {name: _exponent(half_point(pd.Index(d))) for name, d in of_formula.items()}
    return pd.DataFrame([{"value": _exponent(half), "error": error, "n": blocks, **slopes}])


def half_point(d: pd.Index) -> pd.Series:
    """Return the p at which no unit is cut off with probability 1/2, at width d² (closed form).

    d: an index of widths. The p of each width solves the equation
    `theory.live_units_probability(d, d, d ** 2, p) == 1 / 2`.
    """
    cut_off = -np.expm1(-np.log(2) / (2 * d**2))  # largest probability for one side of a unit
    return pd.Series(1 - cut_off ** (1 / d), index=d)


def _half_points(metrics: pd.DataFrame) -> pd.Series:
    """Return for each d the p at which K has full rank in half of the networks, interpolated."""
    points = {}
    for d, rows in full_rank_by_sparsity(metrics).groupby("target_width"):
        share, p = np.maximum.accumulate(rows["fraction"].to_numpy()), rows["sparsity"].to_numpy()
        if share[0] < 0.5 <= share[-1]:
            above = int(np.argmax(share >= 0.5))
            points[d] = np.interp(0.5, share[above - 1 : above + 1], p[above - 1 : above + 1])
    return pd.Series(points, dtype=float)


def _exponent(half: pd.Series) -> float:
    """Return the exponent of the half points in log d / d; nan for fewer than three widths."""
    if len(half) < 3:
        return np.nan
    d = half.index.to_numpy(dtype=float)
    return float(np.polyfit(np.log(np.log(d) / d), np.log(half), 1)[0])
