"""Measure the networks that the theorems of paper A construct.

A network f is constructed so that it equals a target g. Each layer of f solves a linear system with
the Khatri-Rao matrix K of the frozen weights. d is the width of the target, m the width of f, and p
the fraction of nonzero weights.

`rounding` is the error that double precision can cause: equations × machine epsilon × condition
number, summed over the linear systems of a network.

The argument `theorem` is the construction: "wide" (Theorem 1), "deep" (Theorem 2), "sparse"
(Theorem 3) or "low_rank" (Corollary 1). A row of a result is one network, if the function states
nothing else. A function raises NoRows if there are no such networks.
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
    "largest difference between network and target in the networks of {theorem}, divided by our"
    " bound on its rounding error,",
    needs={"target_width": 2},
)
def error_over_rounding(tables: Tables, theorem: str) -> pd.DataFrame:
    """Return the largest error of each network divided by the error that rounding can cause.

    A row is a network, and `value` is the ratio. The error is the largest |f(x) − g(x)| of network
    f and target g over the test inputs x. The denominator is `rounding`, plus 16 machine epsilons
    for each layer of the target. They allow for about a dozen operations that round, even at
    condition number 1. theorem: "wide", "low_rank", "deep" or "sparse". Raises NoRows if there are
    no such networks.
    """
    return _over_rounding(_rows(tables, theorem))


def _over_rounding(rows: pd.DataFrame) -> pd.DataFrame:
    room = 16 * np.finfo(np.float64).eps * rows["depth"]
    return rows.assign(value=rows["max_abs_error"] / (rows["rounding"] + room))


@quantity(
    "largest difference between network and target convolution, divided by our bound on its"
    " rounding error,",
    needs={"target_width": 2},
)
def convolution_error(tables: Tables) -> pd.DataFrame:
    """Return `error_over_rounding` for the networks whose target is a convolution.

    A row is a network, and `value` is the ratio. The numerator is the largest |f(x) − g(x)| of
    network f and target g over the test inputs x. The denominator is the error that rounding in
    double precision can cause. Raises NoRows if no target is a convolution.
    """
    return _over_rounding(select(tables["metrics"], target="convolution"))


@quantity(
    "largest difference between network and target in the networks of Theorem 2, computed with 100"
    " digits,",
    needs={"block": 2},
)
def error_with_digits(tables: Tables) -> pd.DataFrame:
    """Return the largest error of each network of Theorem 2 that was computed with many digits.

    A row is a network, and `value` is the largest |f(x) − g(x)| of network f and target g over the
    test inputs x. Raises NoRows if there are no such networks, or if double precision would be
    enough for all of them.
    """
    rows = random_targets(_rows(tables, "deep", "mpmath"))
    if rows["rounding"].max() < 1:
        raise NoRows(
            "the estimated rounding error of double precision is below 1 in every network, so no"
            " network needs 100 digits"
        )
    return rows.eval("value = max_abs_error")


@quantity(
    "full rank of the Khatri-Rao matrix K in the networks of {theorem} (1: yes, 0: no)",
    needs={"target_width": 2},
)
def full_rank(tables: Tables, theorem: str) -> pd.DataFrame:
    """Return for each network whether its linear systems have full rank: 1 or 0.

    A row is a network; `value` is 1 if each system can be solved for every target. theorem: "wide",
    "low_rank", "deep" or "sparse". Raises NoRows if there are no such networks.
    """
    return _rows(tables, theorem).eval("value = 1.0 * full_rank")


@quantity(
    "d² minus the rank of the Khatri-Rao matrix K, in networks of width d² − 1 without zero weights"
    " (d: target width),"
)
def missing_rank(tables: Tables) -> pd.DataFrame:
    """Return by how much the rank of K is below d² if there is one hidden unit less than d².

    A row is a network of width m = d² − 1 without zero weights, and `value` is d² minus the
    numerical rank. K is the Khatri-Rao matrix of the linear system for gamma. Raises NoRows if
    there are no such networks.
    """
    rows = _rows(tables, "sparse").query("p == 1 and width == d ** 2 - 1")
    rows = nonempty(rows, "network with one unit less than d²")
    return rows.eval("value = d ** 2 - numerical_rank")


@quantity("fraction of the 1,797 images that the copy puts into the same class as the classifier")
def agreement(tables: Tables) -> pd.DataFrame:
    """Return the fraction of images for which a classifier and its copy predict the same class.

    A row is a constructed copy of a digit classifier. `value` is the fraction of the 1,797 images
    of scikit-learn's digits. Raises NoRows if no classifier was copied.
    """
    rows = tables["metrics"].query("target == 'digits'")
    return nonempty(rows, "classifier was reconstructed").assign(value=rows["agreement"])


@quantity(
    "rank of the Khatri-Rao matrix K minus the largest rank of a matrix with zeros at the same"
    " places",
    needs={"target_width": 2, "sparsity": 3},
)
def rank_difference(tables: Tables) -> pd.DataFrame:
    """Return the numerical rank of K minus its structural rank, for each sparse network.

    A row is a network, and `value` is the difference. K is the Khatri-Rao matrix of the linear
    system for gamma. The structural rank is the largest rank that a matrix with these zeros can
    have. Raises NoRows if there are no sparse networks.
    """
    return _rows(tables, "sparse").eval("value = numerical_rank - structural_rank")


def _dense_enough(tables: Tables, constant: float, power: float) -> pd.DataFrame:
    rows = random_targets(_rows(tables, "sparse")).query("depth == 1 and width == d ** 2")
    least = constant * (np.log(rows["d"]) / rows["d"]) ** power
    dense = nonempty(rows[rows["p"] >= least - SLACK], "such p was drawn")
    # One p only: the draws of a replicate at several p are nested.
    return dense[dense["p"] == dense.groupby("d")["p"].transform("min")]


def _counts(rows: pd.DataFrame, success: pd.Series) -> pd.DataFrame:
    return success.groupby(rows["d"]).agg(count="sum", n="size").reset_index()


def _densities(constant: float, power: float) -> str:
    """Return a part of a quantity's name, with places for the arguments.

    The place `{power:.0}` prints nothing, since a root sign says it.
    """
    laws = {0.5: "√(log d / d){power:.0}", 1: "(log d / d){power:.0}"}
    law = laws.get(power, "(log d / d)^{power}")
    return f"at the smallest fraction p of nonzero weights with p ≥ {{constant}} {law},"


@quantity(
    lambda **those: (
        f"fraction of networks whose Khatri-Rao matrix K has full rank, {_densities(**those)}"
    ),
    each=("d",),
    numbers="counts",
    needs={"target_width": 3},
    of="draws",
)
def share_of_full_rank(tables: Tables, constant: float, power: float) -> pd.DataFrame:
    """Return how many sparse networks have a matrix K of full rank, for each target width d.

    A row has this number in `count`, and the number of networks in `n`. The networks have width d²
    and the smallest p that was run with p ≥ constant · (log d / d)^power. p is the fraction of
    nonzero weights, K the Khatri-Rao matrix of the linear system for gamma. Raises NoRows if there
    are no such networks.
    """
    rows = _dense_enough(tables, constant, power)
    return _counts(rows, rows["full_rank"])


@quantity(
    lambda **those: (
        f"fraction of networks that equal their target up to a rounding error (at most"
        f" 1), {_densities(**those)}"
    ),
    each=("d",),
    numbers="counts",
    needs={"target_width": 3},
    of="draws",
)
def share_of_exact(tables: Tables, constant: float, power: float) -> pd.DataFrame:
    """Return how many sparse networks equal their target up to rounding, for each target width d.

    A row has this number in `count`, and the number of networks in `n`. A network f counts if its
    largest |f(x) − g(x)| is at most `rounding`, and `rounding` is below 1. The networks have width
    d² and the smallest p that was run with p ≥ constant · (log d / d)^power. p is the fraction of
    nonzero weights. Raises NoRows if there are no such networks.
    """
    rows = _dense_enough(tables, constant, power)
    return _counts(rows, (rows["max_abs_error"] <= rows["rounding"]) & (rows["rounding"] < 1))


@quantity(
    "exponent a of the fit p ∝ (log d / d)^a, where p is the fraction of nonzero weights at which"
    " half of the Khatri-Rao matrices K have full rank (standard error from {blocks} groups of"
    " networks),",
    unit="exponent",
    numbers="estimates",
    of="groups",
)
def threshold_exponent(tables: Tables, blocks: int) -> pd.DataFrame:
    """Return the exponent a in p ∝ (log d / d)^a for the threshold p of full rank.

    p is a fraction of nonzero weights. At the threshold, the Khatri-Rao matrix K of half of the
    networks has full rank, at width d². d is the width of the target. The exponent is fitted over
    all d.

    The single row has the exponent in `value`, its standard error in `error`, and the number of
    blocks in `n`. The error is estimated by the jackknife over blocks of replicates. `of_formula`
    and `of_formula_far` are the exponents of the formula in `half_point`, over these d and over d =
    1,000 to 10,000. The exponent is nan for fewer than three d.

    blocks: number of blocks of replicates. Raises NoRows if no target is random.
    """
    metrics = tables["metrics"]
    block, half = metrics["replicate"] % blocks, _half_points(metrics)
    without = np.array([_exponent(_half_points(metrics[block != one])) for one in range(blocks)])
    error = np.sqrt((blocks - 1) * without.var())
    of_formula = {"of_formula": half.index, "of_formula_far": FAR}
    slopes = {name: _exponent(half_point(pd.Index(d))) for name, d in of_formula.items()}
    return pd.DataFrame([{"value": _exponent(half), "error": error, "n": blocks, **slopes}])


def half_point(d: pd.Index) -> pd.Series:
    """Return the p at which all hidden units are connected with probability 1/2.

    A connected unit has incoming and outgoing weights. p is the fraction of nonzero weights, and
    the network has d² hidden units. d: the widths of the target. The result is indexed by d. Each p
    solves `theory.live_units_probability(d, d, d ** 2, p) == 1 / 2`, in closed form.
    """
    cut_off = -np.expm1(-np.log(2) / (2 * d**2))  # largest probability for one side of a unit
    return pd.Series(1 - cut_off ** (1 / d), index=d)


def _half_points(metrics: pd.DataFrame) -> pd.Series:
    """Return for each d the p at which the matrix K of half of the networks has full rank.

    p, the fraction of nonzero weights, is interpolated between the values that were run.
    """
    points = {}
    for d, rows in full_rank_by_sparsity(metrics).groupby("target_width"):
        share, p = np.maximum.accumulate(rows["fraction"].to_numpy()), rows["sparsity"].to_numpy()
        if share[0] < 0.5 <= share[-1]:
            above = int(np.argmax(share >= 0.5))
            points[d] = np.interp(0.5, share[above - 1 : above + 1], p[above - 1 : above + 1])
    return pd.Series(points, dtype=float)


def _exponent(half: pd.Series) -> float:
    """Return the exponent a of half points p ∝ (log d / d)^a; nan for fewer than three d.

    half: p indexed by d.
    """
    if len(half) < 3:
        return np.nan
    d = half.index.to_numpy(dtype=float)
    return float(np.polyfit(np.log(np.log(d) / d), np.log(half), 1)[0])
