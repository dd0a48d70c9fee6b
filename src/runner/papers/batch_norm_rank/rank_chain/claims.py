"""What paper B says of the chains, judged over the tables of study `rank_chain`.

Averages carry standard errors from independent chains, or from long pieces of them; where chains
are short against the time in which they forget their start, nothing is judged.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.rank_chain.tables import (
    TAU,
    averages,
    crossings,
    gamma,
    left_over,
    norm_bound,
    pieces,
    powers_of_two,
    rank_bound,
    too_short,
)
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import (
    above,
    below,
    equivalent,
    estimate_above,
    estimate_below,
    estimate_within,
    slope_of_estimates,
)
from runner.results.rows import nonempty, select

ROUNDING = -30.0
"""log(sigma_2 / sigma_1) in float64 ends near -36; a line is fitted above this."""

SAME_RANK = 0.05
"""Of a rank: by how much two laws may differ and count as the same."""

EXPONENTS = "exponent above 1/2 over all d and over the last doubling, at every gamma"


def _point(row: Any) -> str:
    law = getattr(row, "law", "gaussian")  # that of all chains but the averaged ones
    weights = "" if law == "gaussian" else f", {law} weights"
    return f"d = {row.width}, {gamma(row.skip)}{weights}"


def _ratios_to_bound(rows: pd.DataFrame, column: str, bounds: pd.Series) -> pd.DataFrame:
    """`ratio` of an average to its bound in `alpha`, and its error.

    Each bound goes with sqrt(1 - alpha). The errors of both are added: they are not independent.
    """
    relative = rows[f"{column}_se"] / rows[column]
    relative += rows["regularity_se"] / (2 * (1 - rows["regularity"]))
    ratio = rows[column] / bounds
    return rows.assign(ratio=ratio, error=ratio * relative, n=pieces(rows))


def rank_bound_kept(tables: Tables, column: str, tau: float, as_printed: bool = True) -> Found:
    """Theorem 14: the mean of r, or of the soft rank, is above its bound at every d and gamma."""
    rows = averages(tables)
    if words := too_short(rows):
        return Found([], words)
    bounds = rank_bound(rows, tau, as_printed)
    points = [
        estimate_above(row.ratio, row.error, 1.0, n=row.n, point=_point(row), unit="ratio")
        for row in _ratios_to_bound(rows, column, bounds).itertuples()
    ]
    return Found(points)


def _exponents(rows: pd.DataFrame, column: str) -> Iterator[tuple[str, float, float, int]]:
    """Name, exponent in d, its error and n: over all powers of two and over the last doubling."""
    for skip, of_skip in powers_of_two(rows).groupby("skip"):
        if len(of_skip) < 3:
            continue
        for name, part in (("all d", of_skip), ("the last doubling", of_skip.iloc[-2:])):
            relative = (part[f"{column}_se"] / part[column]).to_numpy()
            exponent, error = np.nan, np.nan
            if (relative > 0).all():
                x, y = np.log(part["width"].to_numpy()), np.log(part[column].to_numpy())
                exponent, error = slope_of_estimates(x, y, relative)
            yield f"{gamma(skip)}, {name}", exponent, error, int(pieces(part).min())


def grows_as_root(tables: Tables, column: str) -> Found:
    """Omega(sqrt(d)): the exponent in d is above 1/2, and still so where d is largest."""
    rows = averages(tables)
    if words := too_short(rows):
        return Found([], words)
    points = [
        estimate_above(exponent, error, 0.5, n=n, point=name, unit="exponent")
        for name, exponent, error, n in _exponents(rows, column)
    ]
    return Found(points, "" if points else "fewer than three powers of two among the widths")


def law_hardly_matters(tables: Tables) -> Found:
    """Against Gaussian weights of the same width, at gamma = inf."""
    rows = averages(tables)
    rows = nonempty(rows[np.isinf(rows["skip"])], "rows without skips")
    if words := too_short(rows):
        return Found([], words)
    rows = rows.assign(n=pieces(rows))
    gaussian = rows[rows["law"] == "gaussian"]
    points = []
    for row in rows[rows["law"] != "gaussian"].merge(gaussian, on="width").itertuples():
        ratio = row.soft_rank_x / row.soft_rank_y
        error = np.hypot(row.soft_rank_se_x / row.soft_rank_x, row.soft_rank_se_y / row.soft_rank_y)
        point = f"d = {row.width}, {row.law_x} weights"
        n = int(min(row.n_x, row.n_y))
        points.append(
            estimate_within(ratio, ratio * error, 1.0, SAME_RANK, n=n, point=point, unit="ratio")
        )
    return Found(points)


def exponent_falls(tables: Tables) -> Found:
    """Whether rank_1/2 reaches the order sqrt(d) of its bound."""
    rows = averages(tables)
    if words := too_short(rows):
        return Found([], words)
    points, words = [], []
    for skip, of_skip in rows.groupby("skip"):
        ends = [_doubling(of_skip.iloc[:2]), _doubling(of_skip.iloc[-2:])]
        fall, error = ends[1][0] - ends[0][0], np.hypot(ends[0][1], ends[1][1])
        n = int(pieces(of_skip).min())
        points.append(estimate_below(fall, error, n=n, point=gamma(skip), unit="difference"))
        words.append(f"{gamma(skip)}: {ends[0][0]:.3f} to {ends[1][0]:.3f}")
    return Found(points, "; ".join(words))


def r_is_root(tables: Tables) -> Found:
    """The bound r of the rank, which follows sqrt(d)."""
    rows = averages(tables)
    rows = nonempty(rows[rows["width"] >= 256], "widths from 256 on")
    if words := too_short(rows):
        return Found([], words)
    points = []
    for row in rows.assign(n=pieces(rows)).itertuples():
        ratio, error = (v / np.sqrt(row.width) for v in (row.rank_bound, row.rank_bound_se))
        points.append(
            estimate_within(ratio, error, 1.0, 0.1, n=row.n, point=_point(row), unit="ratio")
        )
    return Found(points)


def _doubling(rows: pd.DataFrame) -> tuple[float, float]:
    """Exponent of the soft rank in d between two widths, and its error."""
    relative = (rows["soft_rank_se"] / rows["soft_rank"]).to_numpy()
    x, y = np.log(rows["width"].to_numpy()), np.log(rows["soft_rank"].to_numpy())
    if len(rows) < 2 or not (relative > 0).all():
        return np.nan, np.nan
    return slope_of_estimates(x, y, relative)


def _of_figures_8_and_9(tables: Tables) -> tuple[pd.DataFrame, str]:
    """The averages at their two gammas, 1 and 0.1, and what is missing for a verdict."""
    rows = averages(tables)
    rows = rows[rows["skip"].isin([1.0, 0.1])]
    if rows["skip"].nunique() < 2:
        return rows, "figures 8 and 9 are at γ = 1 and γ = 0.1"
    return rows, too_short(rows)


def regular(tables: Tables) -> Found:
    """Figure 8: alpha below 0.9 for every d above 10, at gamma 1 and 0.1."""
    rows, missing = _of_figures_8_and_9(tables)
    if missing:
        return Found([], missing)
    rows = rows[rows["width"] > 10]
    points = [
        estimate_below(row.regularity, row.regularity_se, 0.9, n=row.n, point=_point(row))
        for row in rows.assign(n=pieces(rows)).itertuples()
    ]
    return Found(points)


def regularity_falls(tables: Tables) -> Found:
    """Figure 8: alpha decreases as d doubles."""
    rows, missing = _of_figures_8_and_9(tables)
    if missing:
        return Found([], missing)
    points = []
    for skip, of_skip in powers_of_two(rows).groupby("skip"):
        alpha, error = of_skip["regularity"].to_numpy(), of_skip["regularity_se"].to_numpy()
        widths, n = of_skip["width"].to_numpy(), int(pieces(of_skip).min())
        for i in range(len(of_skip) - 1):
            step, noise = alpha[i + 1] - alpha[i], np.hypot(error[i], error[i + 1])
            point = f"d = {widths[i]} to {widths[i + 1]}, {gamma(skip)}"
            points.append(estimate_below(step, noise, n=n, point=point, unit="difference"))
    return Found(points)


def norm_bound_kept(tables: Tables, as_printed: bool = True) -> Found:
    """Lemma 13: E||M||_F^2 is below its bound."""
    rows = averages(tables)
    if words := too_short(rows):
        return Found([], words)
    bounds = norm_bound(rows, as_printed)
    points = [
        estimate_below(row.ratio, row.error, 1.0, n=row.n, point=_point(row), unit="ratio")
        for row in _ratios_to_bound(rows, "frobenius", bounds).itertuples()
    ]
    return Found(points)


def norm_exponent(tables: Tables) -> Found:
    """Figure 9: E||M||_F^2 grows no faster than d^1.5, and neither where d is largest."""
    rows, missing = _of_figures_8_and_9(tables)
    if missing:
        return Found([], missing)
    points = [
        estimate_below(exponent, error, 1.5, n=n, point=name, unit="exponent")
        for name, exponent, error, n in _exponents(rows, "frobenius")
    ]
    return Found(points, "" if points else "fewer than three powers of two among the widths")


def pulled_apart(tables: Tables, layer: int = 10) -> Found:
    """Figure 3b: within ten layers the first singular value falls and the other nine rise."""
    spectrum = tables["spectrum"]
    keys = ["skip", "index", "replicate"]
    start = spectrum[spectrum["layer"] == 0].set_index(keys)["singular_value"]
    later = spectrum[spectrum["layer"] == layer].set_index(keys)["singular_value"]
    if later.empty:
        return Found([], f"no layer {layer}")
    points = []
    for (skip, index), ratios in (later / start).groupby(["skip", "index"]):
        test = below if index == 1 else above
        point = f"singular value {index}, {gamma(skip)}"
        points.append(test(ratios.to_numpy(), 1.0, point=point, unit="ratio"))
    return Found(points)


def _falls(rows: pd.DataFrame) -> pd.DataFrame:
    """How fast log(sigma_2 / sigma_1) falls, per layer, in each chain of one law and gamma.

    `first` and `second` in the halves of the layers before rounding, `rate` without the first
    quarter, where the chain still forgets its start.
    """
    mean = rows.groupby("layer")["log_ratio"].mean()
    usable = nonempty(mean[mean > ROUNDING], "layer before rounding").index
    ratios = rows.pivot(index="replicate", columns="layer", values="log_ratio")
    start, quarter, half, end = (usable[(len(usable) - 1) * k // 4] for k in (0, 1, 2, 4))

    def fall(upper: int, lower: int) -> pd.Series:
        return (ratios[upper] - ratios[lower]) / (lower - upper)

    falls = {"rate": fall(quarter, end), "first": fall(start, half), "second": fall(half, end)}
    return pd.DataFrame(falls)


def decays_linearly(tables: Tables) -> Found:
    """Lemma 3: log(sigma_2 / sigma_1) falls along a line, for every law and gamma.

    A fall with the square root of the depth, or with its logarithm, has less than half of the rate
    in the second half (0.41 and less).
    """
    points, rates = [], []
    for (law, skip), rows in tables["products"].groupby(["law", "skip"]):
        falls, place = _falls(rows), f"{law}, {gamma(skip)}"
        slower, faster = falls["second"] - falls["first"] / 2, falls["first"] - falls["second"] / 2
        points += [
            above(falls["rate"], point=place, unit="slope"),
            above(slower, point=f"{place}, second half less half of the first", unit="difference"),
            above(faster, point=f"{place}, first half less half of the second", unit="difference"),
        ]
        rates.append(f"{falls['rate'].mean():.3g} at {place}")
    return Found(points, f"fall a layer {', '.join(rates)}")


def decays_at_lyapunov_gap(tables: Tables, margin: float) -> Found:
    """For Gaussian weights that rate is the gap of the two largest Lyapunov exponents."""
    points = []
    for skip, rows in select(tables["products"], law="gaussian").groupby("skip"):
        rates, gap = _falls(rows)["rate"], rows["gap"].iloc[0]
        ratio = rates.mean() / gap
        error = np.hypot(rates.sem() / gap, ratio * rows["gap_se"].iloc[0] / gap)
        test = {"n": len(rates), "point": gamma(skip), "unit": "ratio"}
        points.append(estimate_within(ratio, error, 1.0, margin, **test))
    return Found(points)


def converges(tables: Tables, law: str) -> Found:
    """Lemma 3a as printed: H~_l converges, so that its steps end up shorter than they began."""
    rows = select(tables["products"], law=law)
    tenth = rows["layer"].max() / 10
    points = []
    for skip, of_skip in rows.groupby("skip"):
        early = of_skip[of_skip["layer"] <= tenth].groupby("replicate")["step_length"].mean()
        late = of_skip[of_skip["layer"] > 9 * tenth].groupby("replicate")["step_length"].mean()
        points.append(below(late / early, 0.5, point=gamma(skip), unit="ratio"))
    return Found(points)


def expansion_exact(tables: Tables, margin: float) -> Found:
    """Lemma 7 at the smallest gamma: the measured change of a matrix is delta_F(M)."""
    rows = tables["expansions"]
    rows = rows[rows["skip"] == rows["skip"].min()]
    points = [
        equivalent(
            (each["change"] - each["predicted"]) / (2 * width**2),
            margin,
            point=f"d = {width}, {law}, {gamma(each['skip'].iloc[0])}",
        )
        for (width, law), each in rows.groupby(["width", "law"])
    ]
    return Found(points)


def remainder_vanishes(tables: Tables) -> Found:
    """Lemma 7: what is left over for each matrix falls with gamma, faster than gamma itself."""
    points = []
    for (width, law), rows in left_over(tables).groupby(["width", "law"]):
        left = rows.pivot(index="replicate", columns="skip", values="left_over")
        low, high = sorted(left)[:2]
        exponents = np.log(left[high] / left[low]) / np.log(high / low)
        points.append(above(exponents, 1.0, point=f"d = {width}, {law}", unit="exponent"))
    return Found(points)


def live_grow_as_root(tables: Tables) -> Found:
    """k* is at least of order sqrt(d): Theorem 2 for the rank itself (Corollary 15).

    k* as a real number: the rank at which the growth of one more direction crosses zero.
    """
    if words := too_short(tables["input_ranks"]):
        return Found([], words)
    points, texts = [], []
    for skip, rows in nonempty(crossings(tables), "exponent crosses zero").groupby("skip"):
        x, k = np.log(rows["width"].to_numpy()), rows["crossing"].to_numpy()
        exponent, error = slope_of_estimates(x, np.log(k), rows["error"].to_numpy() / k)
        n = int(rows["chains"].min())
        points.append(estimate_above(exponent, error, 0.5, n=n, point=gamma(skip), unit="exponent"))
        ratio = k / np.sqrt(rows["width"])
        texts.append(f"{ratio.min():.3g} to {ratio.max():.3g} sqrt(d) at {gamma(skip)}")
    return Found(points, f"k* {', '.join(texts)}")


def _r_over_full(tables: Tables) -> pd.DataFrame:
    """The mean of r for each rank of the input over that of the largest rank, and its error."""
    parts = []
    for _, rows in tables["input_ranks"].groupby(["skip", "width"]):
        rows = rows.sort_values("input_rank")
        full, error = rows["rank_bound"].iloc[-1], rows["rank_bound_se"].iloc[-1]
        ratio = rows["rank_bound"] / full
        noise = np.hypot(rows["rank_bound_se"], ratio * error) / full
        rows = rows.assign(full=full, ratio=ratio, error=noise, n=pieces(rows))
        parts.append(rows.iloc[:-1])
    return pd.concat(parts)


def one_law_above(tables: Tables, margin: float) -> Found:
    """All inputs of rank k* and more end in the same mean rank; k* beyond its error."""
    if words := too_short(tables["input_ranks"]):
        return Found([], words)
    rows = _r_over_full(tables)
    stable = rows["exponent"] < -2 * rows["exponent_se"]
    points = []
    for row in rows[stable].itertuples():
        test = {"n": row.n, "point": f"rank {row.input_rank}, {_point(row)}", "unit": "ratio"}
        points.append(estimate_within(row.ratio, row.error, 1.0, margin, **test))
    return Found(points)


def other_laws_below(tables: Tables) -> Found:
    """Inputs of lower rank keep a lower mean of r, although r <= rank would allow the full one."""
    if words := too_short(tables["input_ranks"]):
        return Found([], words)
    rows = _r_over_full(tables)
    points = []
    for row in rows[rows["input_rank"] == np.ceil(rows["full"])].itertuples():
        test = {"n": row.n, "point": f"rank {row.input_rank}, {_point(row)}", "unit": "ratio"}
        points.append(estimate_below(row.ratio, row.error, 1.0, **test))
    return Found(points)


CLAIMS = {
    "rank-laws": [
        Claim(
            "soft-rank-bound",
            "the soft rank averaged over depth is above Theorem 14's bound: for uniform and"
            " Rademacher weights without skips, and for all three laws at gamma = 1 / (8 d) and 1"
            " / (16 d)",
            "paper B, Theorem 14 (58)",
            partial(rank_bound_kept, column="soft_rank", tau=TAU),
            "mean / bound above 1 at every law, d and gamma",
            needs={"width": 3, "law": 3},
        ),
        Claim(
            "r-bound",
            "the mean of r is above sqrt((1 - alpha) d): for uniform and Rademacher weights"
            " without skips, and for all three laws at gamma = 1 / (8 d) and 1 / (16 d)",
            "paper B, Theorem 14 (58)",
            partial(rank_bound_kept, column="rank_bound", tau=0.0),
            "mean / bound above 1 at every law, d and gamma",
            needs={"width": 3, "law": 3},
        ),
        Claim(
            "law-hardly-matters",
            "without skips the soft rank of uniform and Rademacher weights is that of Gaussian"
            " ones, to a twentieth",
            "ours, beside paper B, Theorem 14: Gaussian weights stand for those of bounded support",
            law_hardly_matters,
            f"mean over that of Gaussian weights within {SAME_RANK:g} of 1 at every d",
            kind="ours",
            needs={"width": 3, "law": 3},
        ),
    ],
    "rank-fig3a": [
        Claim(
            "soft-rank-bound",
            "the soft rank averaged over depth is above Theorem 14's bound, also without skips",
            "paper B, Theorem 14 (58), figure 3a",
            partial(rank_bound_kept, column="soft_rank", tau=TAU),
            "mean / bound above 1 at every d and gamma",
            needs={"width": 3},
        ),
        Claim(
            "r-bound",
            "the mean of r is above sqrt((1 - alpha) d)",
            "paper B, Theorem 14 (58)",
            partial(rank_bound_kept, column="rank_bound", tau=0.0),
            "mean / bound above 1 at every d and gamma",
            needs={"width": 3},
        ),
        Claim(
            "r-bound-sharper",
            "the mean of r is above 2 sqrt((1 - alpha) d): the proof without its lost factor 4",
            "paper B, Lemma 13 (53) to (55), corrected",
            partial(rank_bound_kept, column="rank_bound", tau=0.0, as_printed=False),
            "mean / bound above 1 at every d and gamma",
            needs={"width": 3},
        ),
        Claim(
            "soft-rank-growth",
            "the soft rank averaged over depth grows at least as sqrt(d), for all gamma",
            "paper B, Section 3.1, figure 3a",
            partial(grows_as_root, column="soft_rank"),
            EXPONENTS,
            needs={"width": 3},
        ),
        Claim(
            "r-growth",
            "the mean of r grows at least as sqrt(d), for all gamma",
            "paper B, Theorem 2 (5)",
            partial(grows_as_root, column="rank_bound"),
            EXPONENTS,
            needs={"width": 3},
        ),
    ],
    "rank-wide": [
        Claim(
            "exponent-falls",
            "the soft rank comes nearer to sqrt(d): its exponent in d falls as d grows",
            "ours, beside paper B, Section 3.1, figure 3a",
            exponent_falls,
            "exponent over the last doubling below that over the first, at every gamma",
            kind="ours",
            needs={"width": 4},
        ),
        Claim(
            "r-is-root",
            "r over sqrt(d) stays within a tenth of one from d = 256 on",
            "ours, beside paper B, Theorem 2 (5): the bound is of the order that it has",
            r_is_root,
            "mean of r / sqrt(d) within 0.1 of 1 at every d from 256 on and every gamma",
            kind="ours",
            needs={"width": 4},
        ),
    ],
    "rank-fig8": [
        Claim(
            "regularity-below-0.9",
            "alpha is below 0.9 for d > 10",
            "paper B, Appendix E, figure 8",
            regular,
            "alpha below 0.9 at every d > 10, gamma = 1 and 0.1",
            needs={"width": 3},
        ),
        Claim(
            "regularity-falls",
            "alpha decreases with d",
            "paper B, Appendix E, after Theorem 14",
            regularity_falls,
            "change of alpha below 0 at every doubling of d, gamma = 1 and 0.1",
            needs={"width": 3},
        ),
        Claim(
            "norm-bound",
            "the mean of ||M||_F^2 is below d^1.5 / sqrt(1 - alpha)",
            "paper B, Lemma 13 (50), figure 9",
            norm_bound_kept,
            "mean / bound below 1 at every d and gamma",
            needs={"width": 3},
        ),
        Claim(
            "norm-growth",
            "the mean of ||M||_F^2 grows no faster than d^1.5",
            "paper B, Appendix E, figure 9",
            norm_exponent,
            "exponent below 1.5 over all d and over the last doubling, gamma = 1 and 0.1",
            needs={"width": 3},
        ),
    ],
    "rank-fig3b": [
        Claim(
            "collinear-pulled-apart",
            "nearly collinear inputs: the largest singular value falls, the others rise quickly",
            "paper B, figure 3b, Example 9",
            pulled_apart,
            "from layer 0 to 10: ratio of the first below 1, of the second to tenth above 1",
        ),
    ],
    "rank-lemma3": [
        Claim(
            "ratio-decays",
            "without normalisation log(sigma_2 / sigma_1) falls linearly with depth, with skips",
            "paper B, Lemma 3",
            decays_linearly,
            "fall a layer above 0, and in each half of the depth more than half of that in the"
            " other, for every law and gamma",
            needs={"layer": 50},
        ),
        Claim(
            "rate-is-lyapunov-gap",
            "the rate is the gap of the two largest Lyapunov exponents (Gaussian weights)",
            "paper B, Section 3.2, footnote 6",
            partial(decays_at_lyapunov_gap, margin=0.25),
            "rate / gap within 0.25 of 1 at every gamma (the next gap, or one in sigma^2, is"
            " another by a factor)",
            needs={"layer": 50},
        ),
        Claim(
            "matrix-converges",
            "the normalised matrix itself converges (Gaussian weights)",
            "paper B, Lemma 3a as printed; its proof gives limit points only (Lemma 18)",
            partial(converges, law="gaussian"),
            "length of a step, last over first tenth of the layers, below 1/2 at every gamma",
            needs={"layer": 50},
        ),
    ],
    "rank-lemma7": [
        Claim(
            "expansion",
            "the change of ||M||_F^2 over a layer is gamma^2 delta_F(M) for small gamma",
            "paper B, Lemma 7 (43)",
            partial(expansion_exact, margin=0.02),
            "change / gamma^2 - delta_F within 2 % of 2 d^2, the first term of delta_F, at the"
            " smallest gamma, for every d and law",
            needs={"width": 3},
        ),
        Claim(
            "remainder",
            "what is left over, over gamma^2, is O(gamma)",
            "paper B, Lemma 7 (43)",
            remainder_vanishes,
            "exponent of gamma above 1 between the two smallest gammas but one, for every d and"
            " law",
            needs={"width": 3, "skip": 3},
        ),
    ],
    "rank-live": [
        Claim(
            "live-directions",
            "the number of live directions grows at least as sqrt(d)",
            "ours, to Corollary 15 of paper B",
            live_grow_as_root,
            "exponent of k* in d above 1/2 at every gamma",
            kind="ours",
            needs={"width": 3},
        ),
        Claim(
            "one-law-above",
            "all inputs of more than k* directions end in one law",
            "ours, to Theorem 14 of paper B, its assumption of a unique invariant law",
            partial(one_law_above, margin=0.02),
            "mean of r within 2 % of that of full rank for every rank from k* on (half of k*"
            " directions lose ten times that)",
            kind="ours",
            needs={"width": 2},
        ),
        Claim(
            "other-laws-below",
            "inputs of lower rank end in laws of lower rank: full rank of the input is needed",
            "paper B, Section 3.1, necessary assumption (i)",
            other_laws_below,
            "mean of r below that of full rank at every d and gamma, for the smallest rank of the"
            " input that would allow it to be equal",
            needs={"width": 2},
        ),
    ],
}
"""By figure, in the order in which they are told."""
