"""What paper A's theorems promise, judged over the rows of study `constructions`."""

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.constructions.tables import full_rank_by_sparsity, random_targets
from runner.results.claims import (
    Judgement,
    Tables,
    Verdict,
    all_of,
    claim,
    decide,
    undecided,
)

TOLERANCE = 1e-8
CONFIDENCE = 0.95


@claim(
    figure="constructions",
    name="deep-exact",
    statement="with skips, d / k + 1 layers of width d k are enough",
    source="paper A, Theorem 2",
    theorem="deep",
)
@claim(
    figure="constructions",
    name="low-rank-exact",
    statement="for a target of rank r four layers of width d r are enough",
    source="paper A, Corollary 1",
    theorem="low_rank",
)
@claim(
    figure="constructions",
    name="wide-exact",
    statement="a random network of width d² equals any target of width d",
    source="paper A, Theorem 1",
    theorem="wide",
)
def exact(tables: Tables, theorem: str) -> Judgement:
    """Every float64 reconstruction is exact to 1e-8 unless rounding in its systems forbids it."""
    rows = tables["metrics"].query("theorem == @theorem and dtype == 'float64'")
    possible = rows[rows["full_rank"] & (rows["rounding"] <= TOLERANCE)]
    expected = f"error <= {TOLERANCE:g} wherever n eps condition number <= {TOLERANCE:g}"
    if possible.empty:
        return undecided("no system is conditioned well enough", expected)
    worst = possible["max_abs_error"].max()
    measured = f"largest error {worst:.2g}; rounding allows {len(possible)} of {len(rows)} networks"
    return decide(bool(worst <= TOLERANCE), measured, expected)


@claim(
    figure="constructions",
    name="deep-exact-with-digits",
    statement="the deep construction is exact for every k; what ends it in float64 is rounding",
    source="paper A, Theorem 2",
)
def exact_with_digits(tables: Tables) -> Judgement:
    """With enough digits every deep reconstruction is exact, also where float64 has none left."""
    deep = random_targets(tables["metrics"]).query("theorem == 'deep'")
    rows = deep[deep["dtype"] == "mpmath"]
    beyond = rows[rows["rounding"] >= 1]
    expected = f"error <= {TOLERANCE:g} for every k, also where n eps condition number > 1"
    if beyond.empty:
        return undecided("no system is beyond float64", expected)
    worst = rows["max_abs_error"].max()
    measured = (
        f"largest error {worst:.2g} with condition numbers up to"
        f" {beyond['condition_number'].max():.2g}"
    )
    single = deep.query("dtype == 'float64' and block == 1 and rounding >= 1")["max_abs_error"]
    if len(single):
        measured += f"; in float64 up to {single.max():.2g}"
    return decide(bool(worst <= TOLERANCE), measured, expected)


@claim(
    figure="constructions",
    name="sparse-exact",
    statement="a sparse random network whose Khatri-Rao product has full rank equals the target",
    source="paper A, Theorem 3",
)
def sparse_exact(tables: Tables) -> Judgement:
    """As `exact`, for Theorem 3."""
    return exact(tables, theorem="sparse")


@claim(
    figure="constructions",
    name="digits-same-predictions",
    statement="a trained digit classifier, rebuilt in a random network, predicts the same",
    source="paper A, Theorems 1 and 2, Remark 2",
)
def same_predictions(tables: Tables) -> Judgement:
    """A trained classifier inside a random network: the same class for every image."""
    rows = tables["metrics"].query("target == 'digits' and full_rank")
    expected = "the same class for all 1797 images"
    if rows.empty:
        return undecided("no classifier was reconstructed", expected)
    measured = (
        f"{rows['agreement'].min():.2%} of the images agree in the worst of {len(rows)} networks;"
        f" largest error {rows['max_abs_error'].max():.2g}"
    )
    return decide(bool((rows["agreement"] == 1).all()), measured, expected)


@claim(
    figure="constructions",
    name="structural-rank",
    statement="the zeros alone decide whether the Khatri-Rao product is invertible",
    source="paper A, Lemma 9",
)
def structural(tables: Tables) -> Judgement:
    """Lemma 9: the zeros alone decide the rank."""
    rows = tables["metrics"].query("theorem == 'sparse'")
    equal = int((rows["numerical_rank"] == rows["structural_rank"]).sum())
    measured = f"equal in {equal} of {len(rows)} draws, {int((~rows['full_rank']).sum())} deficient"
    return decide(equal == len(rows), measured, "equal in every draw")


def _at_least(successes: int, draws: int, probability: float) -> Verdict:
    """Whether so many successes speak for a success probability of at least `probability`.

    Holds if their fraction reaches it, fails if fewer than 5 % of experiments at that very
    probability had so few, and is undecided between.
    """
    from scipy.stats import binom  # late: slow to import

    if successes >= probability * draws:
        return "holds"
    return "fails" if binom.cdf(successes, draws, probability) < 1 - CONFIDENCE else "undecided"


def _often_enough(drawn: pd.DataFrame, smallest: pd.Series, name: str) -> Judgement:
    """Full rank with probability at least 1 - 1/d at every p of at least `smallest`."""
    expected = f"probability at least 1 - 1/d at p >= {name}"
    rows = drawn[drawn["sparsity"] >= smallest - 0.005]  # p is given to two or three digits
    if rows.empty:
        return undecided("no such p was drawn", expected)
    verdicts, measured = [], []
    for d, group in rows.groupby("target_width"):
        count, draws = int(group["count"].sum()), int(group["replicates"].sum())
        verdicts.append(_at_least(count, draws, 1 - 1 / d))
        measured.append(f"d = {d}: {count} of {draws}")
    return Judgement(all_of(verdicts), "; ".join(measured), expected)


@claim(
    figure="constructions",
    name="sparse-probability",
    statement="at p of order sqrt(log d / d) the product is invertible with probability 1 - 1/d",
    source="paper A, Theorem 3 and its proof (p = sqrt(2 d q), q = log d² / d²)",
)
def often_enough_root(tables: Tables) -> Judgement:
    """Theorem 3 at p = sqrt(2 d q) with q = log(d^2) / d^2, its proof's smallest constant."""
    drawn = full_rank_by_sparsity(tables["metrics"])
    d = drawn["target_width"]
    return _often_enough(drawn, 2 * np.sqrt(np.log(d) / d), "2 sqrt(log d / d)")


def half_points(drawn: pd.DataFrame) -> pd.Series:
    """For each d the p at which half of the draws have full rank, between the measured p."""
    found = {}
    for d, group in drawn.groupby("target_width"):
        fraction = np.maximum.accumulate(group["fraction"].to_numpy())
        if fraction[0] < 0.5 <= fraction[-1]:
            last = int(np.argmax(fraction >= 0.5))
            found[d] = np.interp(
                0.5, fraction[last - 1 : last + 1], group["sparsity"].iloc[last - 1 : last + 1]
            )
    return pd.Series(found, dtype=float)


@claim(
    figure="constructions",
    name="sparse-conjecture",
    statement="p of order log d / d is already enough",
    source="paper A, Remark 3 (a conjecture)",
)
def often_enough_log(tables: Tables) -> Judgement:
    """Remark 3 at p = 4 log d / d, where a cut-off unit has probability below 2 / d^2."""
    drawn = full_rank_by_sparsity(tables["metrics"])
    d = drawn["target_width"]
    return _often_enough(drawn, 4 * np.log(d) / d, "4 log d / d")


@claim(
    figure="constructions",
    name="sparse-threshold",
    statement="the p that is needed scales as log d / d, not as its root",
    source="paper A, Remark 3 (a conjecture)",
)
def threshold(tables: Tables) -> Judgement:
    """Remark 3: the p that is needed grows like log d / d and not like its root."""
    expected = "p at half ~ (log d / d)^a with a nearer to 1 than to 1/2"
    half = half_points(full_rank_by_sparsity(tables["metrics"]))
    if len(half) < 3:
        return undecided(f"half points found for {len(half)} widths, 3 needed", expected)
    d = half.index.to_numpy(dtype=float)
    exponent = np.polyfit(np.log(np.log(d) / d), np.log(half), 1)[0]
    ratios = half * d / np.log(d)
    measured = (
        f"a = {exponent:.2f}; p at half is"
        f" {ratios.iloc[0]:.2f}..{ratios.iloc[-1]:.2f} log d / d for d = {d[0]:g}..{d[-1]:g}"
    )
    return decide(bool(exponent > 0.75), measured, expected)


@claim(
    figure="constructions",
    name="cut-off-units",
    statement="what makes a sparse product singular is a hidden unit without weights on one side",
    source="ours; explains Remark 3",
)
def live_draws(tables: Tables) -> Judgement:
    """Draws without a cut-off unit have full rank as often as Theorem 3 asks of all draws."""
    rows = random_targets(tables["metrics"]).query("theorem == 'sparse' and depth == 1")
    live = rows[rows["cut_off_units"] == 0]
    expected = "full rank in at least 1 - 1/d of the draws without a cut-off unit"
    if live.empty:
        return undecided("every draw has a cut-off unit", expected)
    verdicts, measured = [], []
    for d, group in live.groupby("target_width"):
        count = int(group["full_rank"].sum())
        verdicts.append(_at_least(count, len(group), 1 - 1 / d))
        measured.append(f"d = {d}: {count} of {len(group)}")
    return Judgement(all_of(verdicts), "; ".join(measured), expected)
