"""Statements of paper A's theorems about the networks that they construct."""

from runner.papers.norm_tuning.constructions import quantities as q
from runner.results.claims import Claim, ours

BLOCKS = 20
SOLVABLE = "rounding < 1"
THEOREM_3 = "paper A, Theorem 3; the constant 2 is ours: p = √(2 d q), q = log d² / d² in its proof"

CLAIMS = {
    "constructions": [
        Claim(
            "wide-full-rank",
            "for every continuous distribution of the weights, the Khatri-Rao product K of two"
            " random weight matrices of width d² has full rank with probability one",
            "paper A, Theorem 1 and Section 2",
            q.full_rank("wide").always("=", 1),
        ),
        Claim(
            "square-width-needed",
            "targets of width d need d² normalization parameters: with one hidden unit less, the"
            " Khatri-Rao product K of the weights has rank d² − 1",
            "paper A, Section 5",
            q.missing_rank().always("=", 1),
        ),
        Claim(
            "wide-exact",
            "a random network of width d² equals any target of width d, with normalization"
            " parameters γ and β as in Theorem 1",
            "paper A, Theorem 1",
            q.error_over_rounding("wide").given(SOLVABLE).always("<=", 1),
            note="the largest difference is {max_abs_error.max:.2g}",
        ),
        ours(
            "convolution-exact",
            "two random convolutions, 3 x 3 with 9 d² channels and then 1 x 1, equal any 3 x 3"
            " convolution of d channels, with normalization parameters γ and β as in Theorem 1",
            "supplementary to paper A, Theorem 1",
            q.convolution_error().given(SOLVABLE).always("<=", 1),
            note="the largest difference is {max_abs_error.max:.2g}",
        ),
        Claim(
            "low-rank-exact",
            "four random layers of width d r with the normalization parameters of Theorem 1 equal"
            " any target layer of width d and rank r",
            "paper A, Corollary 1",
            q.error_over_rounding("low_rank").given(SOLVABLE).always("<=", 1),
            note="the largest difference is {max_abs_error.max:.2g}",
        ),
        Claim(
            "deep-exact",
            "d/k + 1 random layers of width d k with skip connections equal any target layer of"
            " width d up to rounding (k: block size)",
            "paper A, Theorem 2",
            q.error_over_rounding("deep").given(SOLVABLE).always("<=", 1),
            note="the largest difference is {max_abs_error.max:.2g}",
        ),
        Claim(
            "deep-exact-with-digits",
            "computed with 100 digits, the construction with skip connections is exact for every"
            " block size, even where double precision is not enough",
            "paper A, Theorem 2",
            q.error_with_digits().always("<=", 1e-8),
            note="condition numbers are up to {condition_number.max:.2g}",
        ),
        Claim(
            "digits-same-predictions",
            "a trained digit classifier, copied into a random network through the normalization"
            " parameters γ and β, predicts the same class for every image as before",
            "paper A, Theorems 1 and 2, Remark 2",
            q.agreement().always("=", 1),
            note="the largest difference is {max_abs_error.max:.2g}",
        ),
    ],
    "constructions-sparse": [
        Claim(
            "structural-rank",
            "the zeros of sparse random weights alone decide whether the Khatri-Rao product K of"
            " these weights is invertible",
            "paper A, Lemma 9",
            q.rank_difference().always("=", 0),
        ),
        Claim(
            "sparse-probability",
            "if a fraction 2 √(log d/d) of the weights is nonzero, their Khatri-Rao product is"
            " invertible with a probability of at least 1 − 1/d (d: target width)",
            THEOREM_3,
            q.share_of_full_rank(2, 0.5).above("1 - 1 / d"),
        ),
        Claim(
            "sparse-exact",
            "if a fraction 2 √(log d/d) of the weights is nonzero, the construction equals its"
            " target with a probability of at least 1 − 1/d (d: target width)",
            THEOREM_3,
            q.share_of_exact(2, 0.5).above("1 - 1 / d"),
        ),
        Claim(
            "sparse-conjecture",
            "a fraction of order log d/d of nonzero weights is enough for an invertible"
            " Khatri-Rao product of the weights (d: target width)",
            "paper A, Remark 3 (a conjecture)",
            q.share_of_full_rank(4, 1).above("1 - 1 / d"),
        ),
        Claim(
            "sparse-threshold",
            "the fraction of nonzero weights that an invertible Khatri-Rao product needs scales"
            " like log d/d, not like √(log d/d) (d: target width)",
            "paper A, Remark 3 (a conjecture)",
            q.threshold_exponent(BLOCKS).above(0.75),
            needs={"target_width": 3, "replicate": 2 * BLOCKS},
            note="our closed formula for p has the exponent {of_formula.max:.3f} over these target"
            " widths d, and {of_formula_far.max:.3f} for d = 1,000 to 10,000",
        ),
    ],
}
