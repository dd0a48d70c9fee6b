"""What paper A's theorems promise of the networks that they construct."""

from runner.papers.norm_tuning.constructions import quantities as q
from runner.results.claims import Claim

BLOCKS = 20
SOLVABLE = "rounding < 1"
THEOREM_3 = "paper A, Theorem 3 and its proof (p = √(2 d q), q = log d² / d²)"

CLAIMS = {
    "constructions": [
        Claim(
            "wide-full-rank",
            "the Khatri-Rao product K of random weights at width d² has full rank, with"
            " probability one, whatever their continuous law",
            "paper A, Theorem 1 and Section 2",
            q.full_rank("wide").always("=", 1),
        ),
        Claim(
            "square-width-needed",
            "exact reconstruction needs d² normalization parameters: with one hidden unit less the"
            " rank of K is d² - 1",
            "paper A, Section 5",
            q.missing_rank().always("=", 1),
        ),
        Claim(
            "wide-exact",
            "a random network of width d² equals any target of width d",
            "paper A, Theorem 1",
            q.error_over_rounding("wide").given(SOLVABLE).always("<=", 1),
            note="largest error {max_abs_error.max:.2g}",
        ),
        Claim(
            "low-rank-exact",
            "for a target of rank r four layers of width d r are enough",
            "paper A, Corollary 1",
            q.error_over_rounding("low_rank").given(SOLVABLE).always("<=", 1),
            note="largest error {max_abs_error.max:.2g}",
        ),
        Claim(
            "deep-exact",
            "with skips, d / k + 1 layers of width d k equal a target of width d",
            "paper A, Theorem 2",
            q.error_over_rounding("deep").given(SOLVABLE).always("<=", 1),
            note="largest error {max_abs_error.max:.2g}",
        ),
        Claim(
            "deep-exact-with-digits",
            "the construction with skips is exact for every k; what ends it in float64 is rounding",
            "paper A, Theorem 2",
            q.error_with_digits().always("<=", 1e-8),
            note="largest error {value.max:.2g}, condition numbers up to"
            " {condition_number.max:.2g}",
        ),
        Claim(
            "digits-same-predictions",
            "a trained digit classifier, rebuilt in a random network, predicts the same",
            "paper A, Theorems 1 and 2, Remark 2",
            q.agreement().always("=", 1),
            note="largest error {max_abs_error.max:.2g}",
        ),
    ],
    "constructions-sparse": [
        Claim(
            "structural-rank",
            "the zeros alone decide whether the Khatri-Rao product is invertible",
            "paper A, Lemma 9",
            q.rank_difference().always("=", 0),
        ),
        Claim(
            "sparse-probability",
            "at p of order √(log d / d) the Khatri-Rao product is invertible with probability"
            " 1 - 1/d",
            THEOREM_3,
            q.share_of_full_rank(2, 0.5).above("1 - 1 / d"),
        ),
        Claim(
            "sparse-exact",
            "at p of order √(log d / d) a sparse random network equals the target with probability"
            " 1 - 1/d",
            THEOREM_3,
            q.share_of_exact(2, 0.5).above("1 - 1 / d"),
        ),
        Claim(
            "sparse-conjecture",
            "p of order log d / d is enough for an invertible Khatri-Rao product",
            "paper A, Remark 3 (a conjecture)",
            q.share_of_full_rank(4, 1).above("1 - 1 / d"),
        ),
        Claim(
            "sparse-threshold",
            "the p that an invertible Khatri-Rao product needs scales as log d / d, not as its"
            " root",
            "paper A, Remark 3 (a conjecture)",
            q.threshold_exponent(BLOCKS).above(0.75),
            needs={"target_width": 3, "replicate": 2 * BLOCKS},
        ),
    ],
}
