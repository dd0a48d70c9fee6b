"""What paper B says of the chains, judged over the tables of study `rank_chain`.

Averages carry standard errors from independent chains. A statement about all points of a figure
holds when every point keeps it by `CERTAIN` standard errors, fails when one point breaks it by as
much, and is undecided in between: with a hundred points the chance of a false verdict is below 1 %.
"""

from functools import partial

import numpy as np
import pandas as pd

from runner.claims import Claim, Judgement, Tables, all_of, compare, decide, undecided
from runner.rank_collapse import chain_figures as drawn

CERTAIN = 4.0
"""Standard errors: beyond them lies a share of 3e-5 on one side."""

ROUNDING = -30.0
"""log(sigma_2 / sigma_1) in float64 ends near -36; a line is fitted above this."""


def _above(values: pd.Series, bound: pd.Series, error: pd.Series) -> list[str]:
    """For each point whether `values` are above `bound` by `CERTAIN` standard errors."""
    z = ((values - bound) / error).to_numpy()
    return [
        "holds" if each > CERTAIN else "fails" if each < -CERTAIN else "undecided" for each in z
    ]


def _point(rows: pd.DataFrame, index: int) -> str:
    return f"d = {rows['width'].iloc[index]}, {drawn.gamma(rows['skip'].iloc[index])}"


def _bounds(rows: pd.DataFrame, tau: float, as_printed: bool) -> pd.Series:
    from runner.rank_collapse.theory import rank_bound_theorem  # late: torch

    pairs = zip(rows["width"], rows["regularity"], strict=True)
    return pd.Series([rank_bound_theorem(d, alpha, tau, as_printed) for d, alpha in pairs])


def rank_bound_kept(tables: Tables, column: str, tau: float, as_printed: bool = True) -> Judgement:
    """Theorem 14: the mean of r, or of the soft rank, is above its bound at every d and gamma."""
    rows = drawn.averages(tables)
    bound = _bounds(rows, tau, as_printed)
    # alpha varies with r: its error moves the bound by less than the error of the mean itself
    verdict = all_of(_above(rows[column], bound, rows[f"{column}_se"]))
    ratio = (rows[column] / bound).to_numpy()
    measured = f"{ratio.min():.3g} to {ratio.max():.3g} times the bound; least at "
    return Judgement(verdict, measured + _point(rows, int(ratio.argmin())), "above 1")


def grows_as_root(tables: Tables, column: str) -> Judgement:
    """Omega(sqrt(d)): the ratio to sqrt(d) never falls as d doubles."""
    verdicts, exponents = [], []
    for skip, rows in drawn.averages(tables).groupby("skip"):
        rows = rows[np.log2(rows["width"]) % 1 == 0]
        if len(rows) < 2:
            return undecided(
                "fewer than two powers of two among the widths", "exponent 1/2 or more"
            )
        root = np.sqrt(rows["width"].to_numpy())
        ratio = rows[column].to_numpy() / root
        error = rows[f"{column}_se"].to_numpy() / root
        rise, noise = np.diff(ratio), np.hypot(error[1:], error[:-1])
        verdicts.append("fails" if (rise < -CERTAIN * noise).any() else "holds")
        whole = drawn.power_law(rows["width"], rows[column])[0]
        last = drawn.power_law(rows["width"].iloc[-2:], rows[column].iloc[-2:])[0]
        exponents.append(f"{whole:.3f} ({last:.3f}) at {drawn.gamma(skip)}")
    measured = "exponent over all d (last doubling): " + ", ".join(exponents)
    return Judgement(all_of(verdicts), measured, "ratio to sqrt(d) not falling as d doubles")


def regular(tables: Tables) -> Judgement:
    """Figure 8: alpha below 0.9 for every d above 10, at gamma 1 and 0.1."""
    rows = drawn.averages(tables)
    rows = rows[(rows["width"] > 10) & rows["skip"].isin(drawn.paper_skips(rows))]
    verdict = all_of(_above(0.9 - rows["regularity"], 0 * rows["width"], rows["regularity_se"]))
    worst = int(rows["regularity"].to_numpy().argmax())
    value, error = rows["regularity"].iloc[worst], rows["regularity_se"].iloc[worst]
    return Judgement(
        verdict, f"largest {value:.4f} ± {error:.4f} at {_point(rows, worst)}", "< 0.9"
    )


def regularity_falls(tables: Tables) -> Judgement:
    """Figure 8: alpha decreases as d doubles."""
    verdicts, steps = [], []
    for _, rows in drawn.averages(tables).groupby("skip"):
        rows = rows[np.log2(rows["width"]) % 1 == 0]
        alpha, error = rows["regularity"].to_numpy(), rows["regularity_se"].to_numpy()
        noise = pd.Series(np.hypot(error[1:], error[:-1]))
        verdicts += _above(pd.Series(-np.diff(alpha)), 0 * noise, noise)
        steps += list(-np.diff(alpha) / noise)
    if not steps:
        return undecided("fewer than two powers of two among the widths", "every step down")
    measured = f"smallest of {len(steps)} steps: {min(steps):.1f} standard errors down"
    return Judgement(all_of(verdicts), measured, "down at every doubling of d")


def norm_bound_kept(tables: Tables, as_printed: bool = True) -> Judgement:
    """Lemma 13: E||M||_F^2 is below its bound."""
    from runner.rank_collapse.theory import frobenius_bound  # late: torch

    rows = drawn.averages(tables)
    pairs = zip(rows["width"], rows["regularity"], strict=True)
    bound = pd.Series([frobenius_bound(d, alpha, as_printed) for d, alpha in pairs])
    verdict = all_of(_above(bound, rows["frobenius"], rows["frobenius_se"]))
    ratio = (rows["frobenius"] / bound).to_numpy()
    worst = _point(rows, int(ratio.argmax()))
    return Judgement(verdict, f"at most {ratio.max():.3g} of the bound, at {worst}", "below 1")


def norm_exponent(tables: Tables) -> Judgement:
    """Figure 9: E||M||_F^2 grows no faster than d^1.5."""
    verdicts, measured = [], []
    rows = drawn.averages(tables)
    for skip in drawn.paper_skips(rows):
        of_skip = rows[rows["skip"] == skip]
        if len(of_skip) < 2:
            return undecided("a single width", "ratio to d^1.5 not rising")
        scale = of_skip["width"].to_numpy() ** 1.5
        ratio = of_skip["frobenius"].to_numpy() / scale
        error = of_skip["frobenius_se"].to_numpy() / scale
        rises = np.diff(ratio) > CERTAIN * np.hypot(error[1:], error[:-1])
        verdicts.append("fails" if rises.any() else "holds")
        slope = drawn.power_law(of_skip["width"], of_skip["frobenius"])[0]
        text = f"slope {slope:.3f}, ratio {ratio[0]:.3f} to {ratio[-1]:.3f}"
        measured.append(f"{text} at {drawn.gamma(skip)}")
    return Judgement(all_of(verdicts), "; ".join(measured), "ratio to d^1.5 not rising with d")


def pulled_apart(tables: Tables, layer: int = 10) -> Judgement:
    """Figure 3b: within ten layers the first singular value falls and the other nine rise."""
    spectrum = tables["spectrum"]
    keys = ["skip", "index", "replicate"]
    start = spectrum[spectrum["layer"] == 0].set_index(keys)["singular_value"]
    later = spectrum[spectrum["layer"] == layer].set_index(keys)["singular_value"]
    verdicts, factors = [], {}
    for (_, index), values in (later / start).groupby(["skip", "index"]):
        log = np.log(values.droplevel(["skip", "index"]))
        lower, higher = (log, 0 * log) if index == 1 else (0 * log, log)
        verdicts.append(compare(lower, higher))
        factors.setdefault(index == 1, []).append(float(np.exp(log.mean())))
    largest = spectrum["index"].max()
    measured = (
        f"from layer 0 to {layer}: the first x {max(factors[True]):.2g},"
        f" the second to {largest}th x {min(factors[False]):.2g} to {max(factors[False]):.2g}"
    )
    return Judgement(all_of(verdicts), measured, "first < 1 < others in all trimmed chains")


def _decays(tables: Tables) -> pd.DataFrame:
    """By law and gamma: rate of decay of sigma_2 / sigma_1, over the last three quarters."""
    found = []
    for (law, skip), rows in tables["products"].groupby(["law", "skip"]):
        mean = rows.groupby("layer")["log_ratio"].mean()
        usable = mean[mean > ROUNDING].index
        first, last = usable[len(usable) // 4], usable[-1]
        ratios = rows.pivot(index="replicate", columns="layer", values="log_ratio")
        rates = (ratios[first] - ratios[last]) / (last - first)
        fitted = mean.loc[first:last]
        r2 = np.corrcoef(fitted.index, fitted)[0, 1] ** 2
        record = {"law": law, "skip": skip, "rate": rates.mean(), "r2": r2}
        record["rate_se"] = rates.std() / np.sqrt(len(rates))
        found.append({**record, "gap": rows["gap"].iloc[0], "gap_se": rows["gap_se"].iloc[0]})
    return pd.DataFrame(found)


def decays_linearly(tables: Tables) -> Judgement:
    """Lemma 3: log(sigma_2 / sigma_1) falls along a line, for every law and gamma."""
    rows = _decays(tables)
    falls = rows["rate"] > CERTAIN * rows["rate_se"]
    parts = [f"{r.law}, {drawn.gamma(r.skip)}: {r.rate:.4f}" for r in rows.itertuples()]
    measured = f"fall a layer {'; '.join(parts)}; R² at least {rows['r2'].min():.4f}"
    return decide(bool(falls.all() and (rows["r2"] > 0.99).all()), measured, "> 0 and R² > 0.99")


def decays_at_lyapunov_gap(tables: Tables) -> Judgement:
    """For Gaussian weights that rate is the gap of the two largest Lyapunov exponents."""
    rows = _decays(tables).query("law == 'gaussian'")
    z = (rows["rate"] - rows["gap"]) / np.hypot(rows["rate_se"], rows["gap_se"])
    parts = [
        f"{r.rate:.4f} ± {r.rate_se:.4f} against {r.gap:.4f} at {drawn.gamma(r.skip)}"
        for r in rows.itertuples()
    ]
    return decide(bool((z.abs() < CERTAIN).all()), "; ".join(parts), f"within {CERTAIN:g} s.e.")


def converges(tables: Tables, law: str) -> Judgement:
    """Lemma 3a as printed: H~_l converges, so that its steps end up shorter than they began."""
    rows = tables["products"].query("law == @law")
    tenth = rows["layer"].max() / 10
    verdicts, ratios = [], []
    for _, of_skip in rows.groupby("skip"):
        early = of_skip[of_skip["layer"] <= tenth].groupby("replicate")["step_length"].mean()
        late = of_skip[of_skip["layer"] > 9 * tenth].groupby("replicate")["step_length"].mean()
        verdicts.append(compare(late, early / 2))
        ratios.append(f"{late.mean() / early.mean():.2f} at {drawn.gamma(of_skip['skip'].iloc[0])}")
    measured = "last tenth over first tenth of the layers: " + ", ".join(ratios)
    return Judgement(all_of(verdicts), measured, "below 1/2 in all trimmed chains, towards 0")


def expansion_exact(tables: Tables) -> Judgement:
    """Lemma 7 at the smallest gamma: the measured change equals delta_F(M) within its error."""
    from scipy.stats import chi2, norm  # late: slow to import

    rows = tables["expansions"]
    rows = rows[rows["skip"] == rows["skip"].min()]
    z = (rows["change"] - rows["predicted"]) / rows["change_se"]
    share = float(chi2.sf((z**2).sum(), len(z)))
    limit = float(norm.isf(0.005 / len(z)))
    measured = (
        f"{len(z)} matrices: largest deviation {z.abs().max():.2f} s.e., chi² p = {share:.2g}"
    )
    expected = f"below {limit:.2f} s.e. and p > 0.01 at {drawn.gamma(rows['skip'].iloc[0])}"
    return decide(bool(z.abs().max() < limit and share > 0.01), measured, expected)


def remainder_vanishes(tables: Tables) -> Judgement:
    """Lemma 7: what is left over, over gamma^2, is O(gamma), judged at the two smallest gammas."""
    exponents = []
    for _, rows in drawn.remainders(tables).groupby(["width", "law"]):
        low = np.log(rows.sort_values("skip")[["skip", "remainder"]].iloc[:2])
        exponents += list(low["remainder"].diff()[1:] / low["skip"].diff()[1:])
    if not exponents:
        return undecided("fewer than three gammas", "exponent of gamma >= 1")
    measured = f"exponent of gamma {min(exponents):.2f} to {max(exponents):.2f}"
    return decide(min(exponents) >= 1, measured, "exponent of gamma >= 1")


def one_law_above(tables: Tables) -> Judgement:
    """All inputs of rank k* and more end in the same mean rank."""
    from scipy.stats import chi2  # late: slow to import

    live = drawn.live_directions(tables).set_index(["skip", "width"])["k_star_high"]
    total, count = 0.0, 0
    for key, rows in tables["input_ranks"].groupby(["skip", "width"]):
        rows = rows[rows["input_rank"] >= live[key]]
        weight = 1 / rows["rank_bound_se"] ** 2
        mean = (rows["rank_bound"] * weight).sum() / weight.sum()
        total += float((((rows["rank_bound"] - mean) ** 2) * weight).sum())
        count += max(0, len(rows) - 1)
    if not count:
        return undecided("no ranks above k* were run", "chi² p > 0.001")
    share = float(chi2.sf(total, count))
    measured = f"chi² {total:.0f} on {count} degrees of freedom, p = {share:.2g}"
    return decide(share > 0.001, measured, "p > 0.001")


def other_laws_below(tables: Tables) -> Judgement:
    """Inputs of lower rank keep a lower mean rank: their law is another one."""
    verdicts, shares = [], []
    for _, rows in tables["input_ranks"].groupby(["skip", "width"]):
        rows = rows.sort_values("input_rank")
        top, half = rows.iloc[-1], rows[rows["exponent"] > 0]
        half = half[half["input_rank"] <= half["input_rank"].max() // 2]
        noise = np.hypot(half["rank_bound_se"], top["rank_bound_se"])
        verdicts += _above(top["rank_bound"] - half["rank_bound"], 0 * noise, noise)
        shares += list(half["rank_bound"] / top["rank_bound"])
    if not shares:
        return undecided("no rank below half of k* was run", "mean r below that of full rank")
    measured = f"mean r at most {max(shares):.2f} of that of full rank, for ranks up to k*/2"
    return Judgement(all_of(verdicts), measured, f"below 1 by {CERTAIN:g} s.e.")


def live_grow_as_root(tables: Tables) -> Judgement:
    """k* is at least of order sqrt(d): Theorem 2 for the rank itself (Corollary 15)."""
    live = drawn.live_directions(tables)
    expected = "k* above sqrt(d), exponent 1/2 or more"
    if live["width"].nunique() < 2:
        return undecided("a single width", expected)
    ratio = live["k_star"] / np.sqrt(live["width"])
    exponents = [drawn.power_law(g["width"], g["k_star"])[0] for _, g in live.groupby("skip")]
    measured = f"{ratio.min():.2f} to {ratio.max():.2f} sqrt(d), exponents "
    measured += ", ".join(f"{each:.2f}" for each in exponents)
    return decide(bool(ratio.min() > 1) and min(exponents) >= 0.5, measured, expected)


CLAIMS = {
    "rank-fig3a": [
        Claim(
            "soft-rank-bound",
            "the soft rank averaged over depth is above Theorem 14's bound, also without skips",
            "paper B, Theorem 14 (58), figure 3a",
            partial(rank_bound_kept, column="soft_rank", tau=drawn.TAU),
        ),
        Claim(
            "r-bound",
            "the mean of r is above sqrt((1 - alpha) d)",
            "paper B, Theorem 14 (58)",
            partial(rank_bound_kept, column="rank_bound", tau=0.0),
        ),
        Claim(
            "r-bound-sharper",
            "the mean of r is above 2 sqrt((1 - alpha) d): the proof without its lost factor 4",
            "paper B, Lemma 13 (53) to (55), corrected",
            partial(rank_bound_kept, column="rank_bound", tau=0.0, as_printed=False),
        ),
        Claim(
            "soft-rank-growth",
            "the soft rank averaged over depth grows at least as sqrt(d), for all gamma",
            "paper B, Section 3.1, figure 3a",
            partial(grows_as_root, column="soft_rank"),
        ),
        Claim(
            "r-growth",
            "the mean of r grows at least as sqrt(d), for all gamma",
            "paper B, Theorem 2 (5)",
            partial(grows_as_root, column="rank_bound"),
        ),
    ],
    "rank-fig3b": [
        Claim(
            "collinear-pulled-apart",
            "nearly collinear inputs: the largest singular value falls, the others rise quickly",
            "paper B, figure 3b, Example 9",
            pulled_apart,
        ),
    ],
    "rank-fig8": [
        Claim(
            "regularity-below-0.9",
            "alpha is below 0.9 for d > 10",
            "paper B, Appendix E, figure 8",
            regular,
        ),
        Claim(
            "regularity-falls",
            "alpha decreases with d",
            "paper B, Appendix E, after Theorem 14",
            regularity_falls,
        ),
    ],
    "rank-fig9": [
        Claim(
            "norm-bound",
            "the mean of ||M||_F^2 is below d^1.5 / sqrt(1 - alpha)",
            "paper B, Lemma 13 (50), figure 9",
            norm_bound_kept,
        ),
        Claim(
            "norm-growth",
            "the mean of ||M||_F^2 grows no faster than d^1.5",
            "paper B, Appendix E, figure 9",
            norm_exponent,
        ),
    ],
    "rank-lemma3": [
        Claim(
            "ratio-decays",
            "without normalisation log(sigma_2 / sigma_1) falls linearly with depth, skips or not",
            "paper B, Lemma 3",
            decays_linearly,
        ),
        Claim(
            "rate-is-lyapunov-gap",
            "the rate is the gap of the two largest Lyapunov exponents (Gaussian weights)",
            "paper B, Section 3.2, footnote 6",
            decays_at_lyapunov_gap,
        ),
        Claim(
            "matrix-converges",
            "the normalised matrix itself converges (Gaussian weights)",
            "paper B, Lemma 3a as printed; its proof gives limit points only (Lemma 18)",
            partial(converges, law="gaussian"),
        ),
    ],
    "rank-lemma7": [
        Claim(
            "expansion",
            "the change of ||M||_F^2 over a layer is gamma^2 delta_F(M) for small gamma",
            "paper B, Lemma 7 (43)",
            expansion_exact,
        ),
        Claim(
            "remainder",
            "what is left over, over gamma^2, is O(gamma)",
            "paper B, Lemma 7 (43)",
            remainder_vanishes,
        ),
    ],
    "rank-live": [
        Claim(
            "live-directions",
            "the number of live directions grows at least as sqrt(d)",
            "paper B, Corollary 15; k* is ours",
            live_grow_as_root,
        ),
        Claim(
            "one-law-above",
            "all inputs of rank k* or more end in one law",
            "paper B, Theorem 14, its assumption of a unique invariant law",
            one_law_above,
        ),
        Claim(
            "other-laws-below",
            "inputs of lower rank end in laws of lower rank: full rank of the input is needed",
            "paper B, Section 3.1, necessary assumption (i)",
            other_laws_below,
        ),
    ],
}
