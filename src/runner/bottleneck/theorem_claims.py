"""Claims on paper D's theorems: measured on trained networks, and in two experiments of their
own.
"""

from functools import partial

import numpy as np
import pandas as pd

from runner.bottleneck.theorem_figures import (
    NORM_SLOPE,
    NTK_EXPONENT,
    interpolants,
    slopes,
    with_logarithms,
)
from runner.claims import Claim, Judgement, Tables, decide, trimmed, undecided

STATEMENTS = {
    "schatten": ("L ||J f(x)||_{2/L}^{2/L} <= ||theta||^2", "paper D, Appendix A.1"),
    "theorem-3": ("2 log |J f(x)|_+ <= ||theta||^2 - k L", "paper D, Theorem 3"),
    "theorem-6": (
        "sum_l ||W_l - U_l V_l^T||^2 <= c_1 - 2 log |J f(x)|_+: W_l is nearly k-dimensional",
        "paper D, Theorem 6 (15)",
    ),
    "theorem-7": (
        "the NTK bounds the activations: sum_l ||alpha_{l-1}(x)||^2 <= c max(1, e^{c_1/k}) L"
        " / (k |J f(x)|_+^{2/k})",
        "paper D, Theorem 7 (16)",
    ),
    "corollary-8": (
        "s_{k+1}(W_l alpha_{l-1}(X) / sqrt N) stays below its bound in (1-p) L layers, for every p",
        "paper D, Corollary 8 (17)",
    ),
    "proposition-9": (
        "||d^2_xy Theta(x, x)||_op >= L ||J f(x)||_op^{2-2/L} (the factor of the proof)",
        "paper D, Proposition 9 (18), end of proof of (1)",
    ),
    "proposition-9-printed": (
        "||d^2_xy Theta(x, x)||_op >= 2 L ||J f(x)||_op^{2-2/L} (the factor as printed)",
        "paper D, Proposition 9",
    ),
}


def inequality(tables: Tables, theorem: str) -> Judgement:
    """Whether the inequality is satisfied at every measured point of every trained network."""
    rows = tables.get("theorems", pd.DataFrame({"theorem": []})).query("theorem == @theorem")
    expected = "lower side <= upper side everywhere"
    if rows.empty:
        return undecided("no network with a rank below its width", expected)
    bad, points = rows["violations"].sum(), rows["points"].sum()
    measured = (
        f"{bad} violations at {points} points of {len(rows)} networks;"
        f" lower/upper: median {rows['tightness'].median():.3g}"
    )
    return decide(bool(bad == 0), measured, expected)


THEOREMS = [
    Claim(name, statement, source, partial(inequality, theorem=name))
    for name, (statement, source) in STATEMENTS.items()
]


def _at_least(found: pd.Series, bound: float) -> Judgement:
    """Whether the slopes of all trimmed replicates reach a bound."""
    kept = trimmed(found)
    expected = f"at least {bound:g} in all trimmed replicates"
    if len(kept) < 3:
        return undecided(f"{len(found)} replicates that fit at three sizes or more", expected)
    measured = f"slope {found.mean():.2f}, replicates {kept.min():.2f}..{kept.max():.2f}"
    if (kept >= bound).all():
        return Judgement("holds", measured, expected)
    verdict = "fails" if (kept < bound).all() else "undecided"
    return Judgement(verdict, measured, expected)


def interpolants_are_rare(tables: Tables) -> Judgement:
    """The share of networks that fit all points, at the smallest and at the largest N."""
    metrics = tables["metrics"]
    fits = metrics.index.isin(interpolants(metrics).index)
    share = pd.Series(fits, index=metrics["samples"]).groupby(level=0).mean()
    measured = ", ".join(f"N={N}: {value:.0%}" for N, value in share.items())
    expected = "fewer at the largest N than at the smallest"
    return decide(bool(share.iloc[-1] < share.iloc[0]), f"fit {measured}", expected)


def growth(tables: Tables, column: str, bound: float) -> Judgement:
    """Whether a logarithm grows at least as `bound` log N over the networks that fit."""
    return _at_least(slopes(with_logarithms(interpolants(tables["metrics"])), column), bound)


RANK_ONE = [
    Claim(
        "interpolants-are-rare",
        "gradient descent finds fewer rank-1 interpolants the more points there are",
        "paper D, sections 3.1 and 4.1",
        interpolants_are_rare,
    ),
    Claim(
        "ntk-lower-bound",
        "somewhere Theta(x, x) >= c L e^{-c_1} N^{4 - 4/k*} for rank-1 interpolants",
        "paper D, Theorem 10",
        partial(growth, column="log_ntk_plus_excess", bound=NTK_EXPONENT),
    ),
    Claim(
        "norm-lower-bound",
        "the norm of rank-1 interpolants grows at least as 2 (1 - 1/k*) log N",
        "paper D, section 3.1, after Theorem 2 of its reference [10]",
        partial(growth, column="excess", bound=NORM_SLOPE),
    ),
    Claim(
        "ntk-blows-up",
        "the largest NTK of rank-1 interpolants grows with N: narrow minima",
        "paper D, section 4.1",
        partial(growth, column="log_ntk", bound=0.0),
    ),
]


def represents(tables: Tables) -> Judgement:
    """The networks equal f on the cube, up to rounding that adds up over the layers."""
    metrics = tables["metrics"]
    unit = metrics["max_error"] / (np.finfo(np.float64).eps * metrics["depth"])
    measured = f"largest error {metrics['max_error'].max():.2g}; {unit.max():.2g} eps L"
    return decide(
        bool((unit <= 3).all()), measured, "at most 3 eps L: three roundings in every layer"
    )


def _rates(metrics: pd.DataFrame, column: str) -> list[tuple[float, float, float]]:
    """(exponent g, value at the shallowest, value at the deepest network)."""
    return [
        (g, *rows.sort_values("depth")[column].iloc[[0, -1]])
        for g, rows in metrics.groupby("exponent")
    ]


def excess_vanishes(tables: Tables) -> Judgement:
    """The measured norm is the closed form, which tends to 0 as 12 L^{1-2g} for 1/2 < g < 1."""
    metrics = tables["metrics"]
    difference = (metrics["parameter_norm"] - 3 * metrics["depth"] - metrics["excess"]).abs()
    rounding = np.finfo(np.float64).eps * metrics["parameter_norm"] * metrics["depth"]
    falls = all(last < first for _, first, last in _rates(metrics, "excess"))
    ends = ", ".join(f"g={g:g}: {last:.3g}" for g, _, last in _rates(metrics, "excess"))
    measured = (
        f"at L = {metrics['depth'].max()}: {ends}; off the closed form {difference.max():.2g}"
    )
    agrees = bool((difference <= rounding).all())
    return decide(bool(agrees and falls), measured, "equal to the closed form, falling with L")


def representations_diverge(tables: Tables) -> Judgement:
    """The Lipschitz constant of the middle grows as e^{(L-2) eps / 2} for each g < 1."""
    metrics = tables["metrics"]
    rates = _rates(metrics, "middle_lipschitz")
    ends = ", ".join(f"g={g:g}: {first:.2g} to {last:.2g}" for g, first, last in rates)
    grows = all(
        (rows.sort_values("depth")["middle_lipschitz"].diff().dropna() > 0).all()
        for _, rows in metrics.groupby("exponent")
    )
    return decide(bool(grows), ends, "growing with L")


EXAMPLE20 = [
    Claim(
        "represents",
        "the explicit networks equal f(x, y, z) = (x, y, z + relu(x - y)) on [0, 1]^3",
        "paper D, Example 20",
        represents,
    ),
    Claim(
        "norm-converges",
        "||theta||^2 - 3 L goes to 0: R^(0)(f) = 3, R^(1)(f) = 0",
        "paper D, Example 20 (its last line drops a factor (L-2)/2)",
        excess_vanishes,
    ),
    Claim(
        "representations-diverge",
        "the middle representations are not uniformly Lipschitz",
        "paper D, Example 20",
        representations_diverge,
    ),
]
