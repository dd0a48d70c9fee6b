"""What paper A's theorems promise, judged over the rows of study `constructions`.

A theorem is judged on independent networks: in each replicate, at all sizes together, either every
network satisfies it or there is a counterexample.
"""

from functools import partial

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.constructions.tables import full_rank_by_sparsity, random_targets
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import Evidence, above, estimate_within, everywhere, share

TOLERANCE = 1e-8
BLOCKS = 5
"""Into which the draws are divided where an exponent is fitted: each block gives its own."""

CLOSED_FORM = 0.1
"""Of a probability: by how much a fraction of draws and its closed form may differ."""

EXACT = f"error <= {TOLERANCE:g} wherever n eps condition number <= {TOLERANCE:g}"


def exact(tables: Tables, theorem: str) -> Found:
    """Every float64 reconstruction is exact to 1e-8 unless rounding in its systems forbids it."""
    rows = tables["metrics"].query("theorem == @theorem and dtype == 'float64'")
    possible = rows[rows["full_rank"] & (rows["rounding"] <= TOLERANCE)]
    if possible.empty:
        return Found([], "no system is conditioned well enough")
    return Found(
        [_exact(possible)],
        f"largest error {possible['max_abs_error'].max():.2g}; rounding allows {len(possible)} of"
        f" {len(rows)} networks",
    )


def _exact(rows: pd.DataFrame) -> Evidence:
    """Whether all reconstructions of each replicate are exact."""
    return everywhere((rows["max_abs_error"] <= TOLERANCE).groupby(rows["replicate"]).all())


def exact_with_digits(tables: Tables) -> Found:
    """With enough digits every deep reconstruction is exact, also where float64 has none left."""
    deep = random_targets(tables["metrics"]).query("theorem == 'deep'")
    rows = deep[deep["dtype"] == "mpmath"]
    beyond = rows[rows["rounding"] >= 1]
    if beyond.empty:
        return Found([], "no system is beyond float64")
    words = (
        f"largest error {rows['max_abs_error'].max():.2g} with condition numbers up to"
        f" {beyond['condition_number'].max():.2g}"
    )
    single = deep.query("dtype == 'float64' and block == 1 and rounding >= 1")["max_abs_error"]
    if len(single):
        words += f", in float64 up to {single.max():.2g}"
    return Found([_exact(rows[rows["replicate"].isin(beyond["replicate"])])], words)


def same_predictions(tables: Tables) -> Found:
    """A trained classifier inside a random network: the same class for every image."""
    rows = tables["metrics"].query("target == 'digits' and full_rank")
    if rows.empty:
        return Found([], "no classifier was reconstructed")
    words = (
        f"{rows['agreement'].min():.2%} of the images agree in the worst of {len(rows)} networks,"
        f" largest error {rows['max_abs_error'].max():.2g}"
    )
    return Found([everywhere((rows["agreement"] == 1).groupby(rows["replicate"]).all())], words)


def structural(tables: Tables) -> Found:
    """Lemma 9: the zeros alone decide the rank."""
    rows = tables["metrics"].query("theorem == 'sparse'")
    equal = rows["numerical_rank"] == rows["structural_rank"]
    deficient = int((~rows["full_rank"]).sum())
    words = f"equal in {equal.sum()} of {len(rows)} draws, {deficient} of them deficient"
    return Found([everywhere(equal.groupby(rows["replicate"]).all())], words)


def _often_enough(drawn: pd.DataFrame, smallest: pd.Series) -> Found:
    """Full rank with probability above 1 - 1/d at every p of at least `smallest`, for every d."""
    rows = drawn[drawn["sparsity"] >= smallest - 0.005]  # p is given to two or three digits
    points = [
        share(
            int(group["count"].sum()), int(group["replicates"].sum()), 1 - 1 / d, point=f"d = {d}"
        )
        for d, group in rows.groupby("target_width")
    ]
    return Found(points, "" if points else "no such p was drawn")


def often_enough_root(tables: Tables) -> Found:
    """Theorem 3 at p = sqrt(2 d q) with q = log(d^2) / d^2, its proof's smallest constant."""
    drawn = full_rank_by_sparsity(tables["metrics"])
    d = drawn["target_width"]
    return _often_enough(drawn, 2 * np.sqrt(np.log(d) / d))


def closed_form(tables: Tables) -> Found:
    """Counts of full rank against ((1 - (1 - p)^d)^2)^(d^2): for each d, over all p."""
    drawn = full_rank_by_sparsity(tables["metrics"])
    points, chi_squared, cells = [], 0.0, 0
    for d, rows in drawn.groupby("target_width"):
        q, n = rows["live_units"], rows["replicates"]
        variance = n * q * (1 - q)
        difference = float((rows["count"] - n * q).sum() / n.sum())
        error = float(np.sqrt(variance.sum()) / n.sum())
        points.append(
            estimate_within(
                difference, error, 0.0, CLOSED_FORM, n=int(n.sum()), point=f"d = {d}", unit="share"
            )
        )
        tested = variance > 1  # where chi-squared is near its limiting law
        chi_squared += float(((rows["count"] - n * q) ** 2 / variance)[tested].sum())
        cells += int(tested.sum())
    words = f"chi-squared {chi_squared:.1f} for {cells} pairs of d and p" if cells else ""
    return Found(points, words)


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


def often_enough_log(tables: Tables) -> Found:
    """Remark 3 at p = 4 log d / d, where a cut-off unit has probability below 2 / d^2."""
    drawn = full_rank_by_sparsity(tables["metrics"])
    d = drawn["target_width"]
    return _often_enough(drawn, 4 * np.log(d) / d)


def threshold(tables: Tables) -> Found:
    """Remark 3: the p that is needed grows like log d / d and not like its root."""
    metrics = tables["metrics"]
    whole = half_points(full_rank_by_sparsity(metrics))
    if len(whole) < 3:
        return Found([], f"half points found for {len(whole)} widths, 3 needed")
    blocks = [metrics[metrics["replicate"] % BLOCKS == block] for block in range(BLOCKS)]
    exponents = [_exponent(half_points(full_rank_by_sparsity(block))) for block in blocks]
    d = whole.index.to_numpy(dtype=float)
    ratios = whole * d / np.log(d)
    words = (
        f"p at half is {ratios.iloc[0]:.2f}..{ratios.iloc[-1]:.2f} log d / d for"
        f" d = {d[0]:g}..{d[-1]:g}, a = {_exponent(whole):.2f} in all draws"
    )
    return Found([above(np.array(exponents), 3 / 4, unit="exponent")], words)


def _exponent(half: pd.Series) -> float:
    """Of p at half in log d / d, by least squares; nan where a width has no half point."""
    if len(half) < 3:
        return np.nan
    d = half.index.to_numpy(dtype=float)
    return float(np.polyfit(np.log(np.log(d) / d), np.log(half), 1)[0])


def live_draws(tables: Tables) -> Found:
    """Draws without a cut-off unit have full rank as often as Theorem 3 asks of all draws."""
    rows = random_targets(tables["metrics"]).query("theorem == 'sparse' and depth == 1")
    live = rows[rows["cut_off_units"] == 0]
    points = [
        share(int(group["full_rank"].sum()), len(group), 1 - 1 / d, point=f"d = {d}")
        for d, group in live.groupby("target_width")
    ]
    return Found(points, "" if points else "every draw has a cut-off unit")


CLAIMS = {
    "constructions": [
        Claim(
            "wide-exact",
            "a random network of width d² equals any target of width d",
            "paper A, Theorem 1",
            partial(exact, theorem="wide"),
            EXACT,
            needs={"target_width": 2},
        ),
        Claim(
            "low-rank-exact",
            "for a target of rank r four layers of width d r are enough",
            "paper A, Corollary 1",
            partial(exact, theorem="low_rank"),
            EXACT,
            needs={"target_width": 2},
        ),
        Claim(
            "deep-exact",
            "with skips, d / k + 1 layers of width d k are enough",
            "paper A, Theorem 2",
            partial(exact, theorem="deep"),
            EXACT,
            needs={"target_width": 2},
        ),
        Claim(
            "sparse-exact",
            "a sparse random network whose Khatri-Rao product has full rank equals the target",
            "paper A, Theorem 3",
            partial(exact, theorem="sparse"),
            EXACT,
            needs={"target_width": 2},
        ),
        Claim(
            "deep-exact-with-digits",
            "the deep construction is exact for every k; what ends it in float64 is rounding",
            "paper A, Theorem 2",
            exact_with_digits,
            f"error <= {TOLERANCE:g} for every k, also where n eps condition number > 1",
            needs={"block": 2},
        ),
        Claim(
            "digits-same-predictions",
            "a trained digit classifier, rebuilt in a random network, predicts the same",
            "paper A, Theorems 1 and 2, Remark 2",
            same_predictions,
            "the same class for all 1797 images",
        ),
    ],
    "constructions-sparse": [
        Claim(
            "structural-rank",
            "the zeros alone decide whether the Khatri-Rao product is invertible",
            "paper A, Lemma 9",
            structural,
            "numerical rank = structural rank in every draw",
            needs={"target_width": 2, "sparsity": 3},
        ),
        Claim(
            "sparse-probability",
            "at p of order sqrt(log d / d) the product is invertible with probability 1 - 1/d",
            "paper A, Theorem 3 and its proof (p = sqrt(2 d q), q = log d² / d²)",
            often_enough_root,
            "probability above 1 - 1/d at p >= 2 sqrt(log d / d), for every d",
            needs={"target_width": 3},
        ),
        Claim(
            "sparse-closed-form",
            "full rank has the probability, in closed form, that no hidden unit is cut off",
            "explains Theorem 3 and Remark 3",
            closed_form,
            f"mean difference over the p that were drawn within {CLOSED_FORM:g}, for every d",
            kind="ours",
            needs={"target_width": 3, "sparsity": 3},
        ),
        Claim(
            "sparse-conjecture",
            "p of order log d / d is already enough",
            "paper A, Remark 3 (a conjecture)",
            often_enough_log,
            "probability above 1 - 1/d at p >= 4 log d / d, for every d",
            needs={"target_width": 3},
        ),
        Claim(
            "sparse-threshold",
            "the p that is needed scales as log d / d, not as its root",
            "paper A, Remark 3 (a conjecture)",
            threshold,
            f"p at half ~ (log d / d)^a, a above 3/4 in each of {BLOCKS} blocks of draws: nearer"
            " to 1 than to 1/2",
            needs={"target_width": 3, "replicate": 2 * BLOCKS},
        ),
        Claim(
            "cut-off-units",
            "what makes a sparse product singular is a hidden unit without weights on one side",
            "explains Remark 3",
            live_draws,
            "full rank with probability above 1 - 1/d in draws without a cut-off unit, every d",
            kind="ours",
            needs={"target_width": 3},
        ),
    ],
}
"""By figure, in the order in which they are told."""
