"""What paper B says of the chains, judged over the tables of study `rank_chain`.

Averages carry standard errors from independent chains. A statement about all points of a figure
holds when every point keeps it by `CERTAIN` standard errors, fails when one point breaks it by as
much, and is undecided in between: with a hundred points the chance of a false verdict is below 1 %.
"""

import numpy as np
import pandas as pd

from runner.papers.rank_collapse.chain.tables import (
    TAU,
    averages,
    gamma,
    live_directions,
    paper_skips,
    power_law,
    remainders,
)
from runner.results.claims import (
    Judgement,
    Tables,
    all_of,
    beyond,
    claim,
    compare,
    decide,
    undecided,
)

CERTAIN = 4.0
"""Standard errors: beyond them lies a share of 3e-5 on one side."""

ROUNDING = -30.0
"""log(sigma_2 / sigma_1) in float64 ends near -36; a line is fitted above this."""


def _point(rows: pd.DataFrame, index: int) -> str:
    return f"d = {rows['width'].iloc[index]}, {gamma(rows['skip'].iloc[index])}"


def _bounds(rows: pd.DataFrame, tau: float, as_printed: bool) -> pd.Series:
    from runner.papers.rank_collapse.theory import rank_bound_theorem  # late: torch

    pairs = zip(rows["width"], rows["regularity"], strict=True)
    return pd.Series([rank_bound_theorem(d, alpha, tau, as_printed) for d, alpha in pairs])


@claim(
    figure="rank-fig3a",
    name="r-bound-sharper",
    statement="the mean of r is above 2 sqrt((1 - alpha) d): the proof without its lost factor 4",
    source="paper B, Lemma 13 (53) to (55), corrected",
    column="rank_bound",
    tau=0.0,
    as_printed=False,
)
@claim(
    figure="rank-fig3a",
    name="r-bound",
    statement="the mean of r is above sqrt((1 - alpha) d)",
    source="paper B, Theorem 14 (58)",
    column="rank_bound",
    tau=0.0,
)
@claim(
    figure="rank-fig3a",
    name="soft-rank-bound",
    statement="the soft rank averaged over depth is above Theorem 14's bound, also without skips",
    source="paper B, Theorem 14 (58), figure 3a",
    column="soft_rank",
    tau=TAU,
)
def rank_bound_kept(tables: Tables, column: str, tau: float, as_printed: bool = True) -> Judgement:
    """Theorem 14: the mean of r, or of the soft rank, is above its bound at every d and gamma."""
    rows = averages(tables)
    bound = _bounds(rows, tau, as_printed)
    # alpha varies with r: its error moves the bound by less than the error of the mean itself
    verdict = all_of(beyond(rows[column] - bound, rows[f"{column}_se"], CERTAIN))
    ratio = (rows[column] / bound).to_numpy()
    measured = f"{ratio.min():.3g} to {ratio.max():.3g} times the bound; least at "
    return Judgement(verdict, measured + _point(rows, int(ratio.argmin())), "above 1")


@claim(
    figure="rank-fig3a",
    name="r-growth",
    statement="the mean of r grows at least as sqrt(d), for all gamma",
    source="paper B, Theorem 2 (5)",
    column="rank_bound",
)
@claim(
    figure="rank-fig3a",
    name="soft-rank-growth",
    statement="the soft rank averaged over depth grows at least as sqrt(d), for all gamma",
    source="paper B, Section 3.1, figure 3a",
    column="soft_rank",
)
def grows_as_root(tables: Tables, column: str) -> Judgement:
    """Omega(sqrt(d)): the ratio to sqrt(d) never falls as d doubles."""
    verdicts, exponents = [], []
    for skip, rows in averages(tables).groupby("skip"):
        rows = rows[np.log2(rows["width"]) % 1 == 0]
        if len(rows) < 2:
            return undecided(
                "fewer than two powers of two among the widths", "exponent 1/2 or more"
            )
        root = np.sqrt(rows["width"].to_numpy())
        ratio = rows[column].to_numpy() / root
        error = rows[f"{column}_se"].to_numpy() / root
        rises = beyond(np.diff(ratio), np.hypot(error[1:], error[:-1]), CERTAIN)
        verdicts.append("fails" if "fails" in rises else "holds")
        whole = power_law(rows["width"], rows[column])[0]
        last = power_law(rows["width"].iloc[-2:], rows[column].iloc[-2:])[0]
        exponents.append(f"{whole:.3f} ({last:.3f}) at {gamma(skip)}")
    measured = "exponent over all d (last doubling): " + ", ".join(exponents)
    return Judgement(all_of(verdicts), measured, "ratio to sqrt(d) not falling as d doubles")


@claim(
    figure="rank-fig8",
    name="regularity-below-0.9",
    statement="alpha is below 0.9 for d > 10",
    source="paper B, Appendix E, figure 8",
)
def regular(tables: Tables) -> Judgement:
    """Figure 8: alpha below 0.9 for every d above 10, at gamma 1 and 0.1."""
    rows = averages(tables)
    rows = rows[(rows["width"] > 10) & rows["skip"].isin(paper_skips(rows))]
    verdict = all_of(beyond(0.9 - rows["regularity"], rows["regularity_se"], CERTAIN))
    worst = int(rows["regularity"].to_numpy().argmax())
    value, error = rows["regularity"].iloc[worst], rows["regularity_se"].iloc[worst]
    return Judgement(
        verdict, f"largest {value:.4f} ± {error:.4f} at {_point(rows, worst)}", "< 0.9"
    )


@claim(
    figure="rank-fig8",
    name="regularity-falls",
    statement="alpha decreases with d",
    source="paper B, Appendix E, after Theorem 14",
)
def regularity_falls(tables: Tables) -> Judgement:
    """Figure 8: alpha decreases as d doubles."""
    verdicts, steps = [], []
    for _, rows in averages(tables).groupby("skip"):
        rows = rows[np.log2(rows["width"]) % 1 == 0]
        alpha, error = rows["regularity"].to_numpy(), rows["regularity_se"].to_numpy()
        noise = np.hypot(error[1:], error[:-1])
        verdicts += beyond(-np.diff(alpha), noise, CERTAIN)
        steps += list(-np.diff(alpha) / noise)
    if not steps:
        return undecided("fewer than two powers of two among the widths", "every step down")
    measured = f"smallest of {len(steps)} steps: {min(steps):.1f} standard errors down"
    return Judgement(all_of(verdicts), measured, "down at every doubling of d")


@claim(
    figure="rank-fig9",
    name="norm-bound",
    statement="the mean of ||M||_F^2 is below d^1.5 / sqrt(1 - alpha)",
    source="paper B, Lemma 13 (50), figure 9",
)
def norm_bound_kept(tables: Tables, as_printed: bool = True) -> Judgement:
    """Lemma 13: E||M||_F^2 is below its bound."""
    from runner.papers.rank_collapse.theory import frobenius_bound  # late: torch

    rows = averages(tables)
    pairs = zip(rows["width"], rows["regularity"], strict=True)
    bound = pd.Series([frobenius_bound(d, alpha, as_printed) for d, alpha in pairs])
    verdict = all_of(beyond(bound - rows["frobenius"], rows["frobenius_se"], CERTAIN))
    ratio = (rows["frobenius"] / bound).to_numpy()
    worst = _point(rows, int(ratio.argmax()))
    return Judgement(verdict, f"at most {ratio.max():.3g} of the bound, at {worst}", "below 1")


@claim(
    figure="rank-fig9",
    name="norm-growth",
    statement="the mean of ||M||_F^2 grows no faster than d^1.5",
    source="paper B, Appendix E, figure 9",
)
def norm_exponent(tables: Tables) -> Judgement:
    """Figure 9: E||M||_F^2 grows no faster than d^1.5."""
    verdicts, measured = [], []
    rows = averages(tables)
    for skip in paper_skips(rows):
        of_skip = rows[rows["skip"] == skip]
        if len(of_skip) < 2:
            return undecided("a single width", "ratio to d^1.5 not rising")
        scale = of_skip["width"].to_numpy() ** 1.5
        ratio = of_skip["frobenius"].to_numpy() / scale
        error = of_skip["frobenius_se"].to_numpy() / scale
        falls = beyond(-np.diff(ratio), np.hypot(error[1:], error[:-1]), CERTAIN)
        verdicts.append("fails" if "fails" in falls else "holds")
        slope = power_law(of_skip["width"], of_skip["frobenius"])[0]
        text = f"slope {slope:.3f}, ratio {ratio[0]:.3f} to {ratio[-1]:.3f}"
        measured.append(f"{text} at {gamma(skip)}")
    return Judgement(all_of(verdicts), "; ".join(measured), "ratio to d^1.5 not rising with d")


@claim(
    figure="rank-fig3b",
    name="collinear-pulled-apart",
    statement="nearly collinear inputs: the largest singular value falls, the others rise quickly",
    source="paper B, figure 3b, Example 9",
)
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


@claim(
    figure="rank-lemma3",
    name="ratio-decays",
    statement="without normalisation log(sigma_2 / sigma_1) falls linearly"
    " with depth, skips or not",
    source="paper B, Lemma 3",
)
def decays_linearly(tables: Tables) -> Judgement:
    """Lemma 3: log(sigma_2 / sigma_1) falls along a line, for every law and gamma."""
    rows = _decays(tables)
    falls = all_of(beyond(rows["rate"], rows["rate_se"], CERTAIN)) == "holds"
    parts = [f"{r.law}, {gamma(r.skip)}: {r.rate:.4f}" for r in rows.itertuples()]
    measured = f"fall a layer {'; '.join(parts)}; R² at least {rows['r2'].min():.4f}"
    return decide(bool(falls and (rows["r2"] > 0.99).all()), measured, "> 0 and R² > 0.99")


@claim(
    figure="rank-lemma3",
    name="rate-is-lyapunov-gap",
    statement="the rate is the gap of the two largest Lyapunov exponents (Gaussian weights)",
    source="paper B, Section 3.2, footnote 6",
)
def decays_at_lyapunov_gap(tables: Tables) -> Judgement:
    """For Gaussian weights that rate is the gap of the two largest Lyapunov exponents."""
    rows = _decays(tables).query("law == 'gaussian'")
    z = (rows["rate"] - rows["gap"]) / np.hypot(rows["rate_se"], rows["gap_se"])
    parts = [
        f"{r.rate:.4f} ± {r.rate_se:.4f} against {r.gap:.4f} at {gamma(r.skip)}"
        for r in rows.itertuples()
    ]
    return decide(bool((z.abs() < CERTAIN).all()), "; ".join(parts), f"within {CERTAIN:g} s.e.")


@claim(
    figure="rank-lemma3",
    name="matrix-converges",
    statement="the normalised matrix itself converges (Gaussian weights)",
    source="paper B, Lemma 3a as printed; its proof gives limit points only (Lemma 18)",
    law="gaussian",
)
def converges(tables: Tables, law: str) -> Judgement:
    """Lemma 3a as printed: H~_l converges, so that its steps end up shorter than they began."""
    rows = tables["products"].query("law == @law")
    tenth = rows["layer"].max() / 10
    verdicts, ratios = [], []
    for _, of_skip in rows.groupby("skip"):
        early = of_skip[of_skip["layer"] <= tenth].groupby("replicate")["step_length"].mean()
        late = of_skip[of_skip["layer"] > 9 * tenth].groupby("replicate")["step_length"].mean()
        verdicts.append(compare(late, early / 2))
        ratios.append(f"{late.mean() / early.mean():.2f} at {gamma(of_skip['skip'].iloc[0])}")
    measured = "last tenth over first tenth of the layers: " + ", ".join(ratios)
    return Judgement(all_of(verdicts), measured, "below 1/2 in all trimmed chains, towards 0")


@claim(
    figure="rank-lemma7",
    name="expansion",
    statement="the change of ||M||_F^2 over a layer is gamma^2 delta_F(M) for small gamma",
    source="paper B, Lemma 7 (43)",
)
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
    expected = f"below {limit:.2f} s.e. and p > 0.01 at {gamma(rows['skip'].iloc[0])}"
    return decide(bool(z.abs().max() < limit and share > 0.01), measured, expected)


@claim(
    figure="rank-lemma7",
    name="remainder",
    statement="what is left over, over gamma^2, is O(gamma)",
    source="paper B, Lemma 7 (43)",
)
def remainder_vanishes(tables: Tables) -> Judgement:
    """Lemma 7: what is left over, over gamma^2, is O(gamma), judged at the two smallest gammas."""
    exponents = []
    for _, rows in remainders(tables).groupby(["width", "law"]):
        low = np.log(rows.sort_values("skip")[["skip", "remainder"]].iloc[:2])
        exponents += list(low["remainder"].diff()[1:] / low["skip"].diff()[1:])
    if not exponents:
        return undecided("fewer than three gammas", "exponent of gamma >= 1")
    measured = f"exponent of gamma {min(exponents):.2f} to {max(exponents):.2f}"
    return decide(min(exponents) >= 1, measured, "exponent of gamma >= 1")


@claim(
    figure="rank-live",
    name="live-directions",
    statement="the number of live directions grows at least as sqrt(d)",
    source="paper B, Corollary 15; k* is ours",
)
def live_grow_as_root(tables: Tables) -> Judgement:
    """k* is at least of order sqrt(d): Theorem 2 for the rank itself (Corollary 15)."""
    live = live_directions(tables)
    expected = "k* above sqrt(d), exponent 1/2 or more"
    if live["width"].nunique() < 2:
        return undecided("a single width", expected)
    ratio = live["k_star"] / np.sqrt(live["width"])
    exponents = [power_law(g["width"], g["k_star"])[0] for _, g in live.groupby("skip")]
    measured = f"{ratio.min():.2f} to {ratio.max():.2f} sqrt(d), exponents "
    measured += ", ".join(f"{each:.2f}" for each in exponents)
    return decide(bool(ratio.min() > 1) and min(exponents) >= 0.5, measured, expected)


@claim(
    figure="rank-live",
    name="one-law-above",
    statement="all inputs of rank k* or more end in one law",
    source="paper B, Theorem 14, its assumption of a unique invariant law",
)
def one_law_above(tables: Tables) -> Judgement:
    """All inputs of rank k* and more end in the same mean rank."""
    from scipy.stats import chi2  # late: slow to import

    live = live_directions(tables).set_index(["skip", "width"])["k_star_high"]
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


@claim(
    figure="rank-live",
    name="other-laws-below",
    statement="inputs of lower rank end in laws of lower rank: full rank of the input is needed",
    source="paper B, Section 3.1, necessary assumption (i)",
)
def other_laws_below(tables: Tables) -> Judgement:
    """Inputs of lower rank keep a lower mean rank: their law is another one."""
    verdicts, shares = [], []
    for _, rows in tables["input_ranks"].groupby(["skip", "width"]):
        rows = rows.sort_values("input_rank")
        top, half = rows.iloc[-1], rows[rows["exponent"] > 0]
        half = half[half["input_rank"] <= half["input_rank"].max() // 2]
        noise = np.hypot(half["rank_bound_se"], top["rank_bound_se"])
        verdicts += beyond(top["rank_bound"] - half["rank_bound"], noise, CERTAIN)
        shares += list(half["rank_bound"] / top["rank_bound"])
    if not shares:
        return undecided("no rank below half of k* was run", "mean r below that of full rank")
    measured = f"mean r at most {max(shares):.2f} of that of full rank, for ranks up to k*/2"
    return Judgement(all_of(verdicts), measured, f"below 1 by {CERTAIN:g} s.e.")
