"""Statements of paper B about very deep linear networks: Section 3, Appendix E, Theorem 14."""

from runner.papers.batch_norm_rank.rank_chain import quantities as q
from runner.results.claims import Claim

OF_THE_FIGURES = "(γ == 1 or γ == 0.1)"
"""Condition: γ is that of figures 8 and 9."""

SOFT_RANK_GROWTH = Claim(
    "soft-rank-growth",
    "the soft rank of linear networks with batch norm, averaged over depth, grows at least as √d,"
    " for every γ",
    "paper B, Section 3.1, figure 3a",
    q.exponent("soft rank").above(1 / 2),
)

FIGURE_3A = [
    Claim(
        "soft-rank-bound",
        "the soft rank of linear networks with batch norm, averaged over depth, is above the bound"
        " of Theorem 14",
        "paper B, Theorem 14 (58), figure 3a",
        q.soft_rank_over_bound().above(1),
    ),
    Claim(
        "r-bound",
        "r of linear networks with batch norm, averaged over depth, is above √((1 − α) d)",
        "paper B, Theorem 14 (58)",
        q.r_over_bound().above(1),
    ),
    SOFT_RANK_GROWTH,
    Claim(
        "r-growth",
        "r of linear networks with batch norm, averaged over depth, grows at least as √d, for every"
        " γ",
        "paper B, Theorem 2 (5)",
        q.exponent("r").above(1 / 2),
    ),
]

LAWS = [
    Claim(
        "soft-rank-bound",
        "for Gaussian, uniform and Rademacher weights the soft rank, averaged over depth, is above"
        " the bound of Theorem 14, without skips and at γ ≤ 1 / (8 d)",
        "paper B, Theorem 14 (58)",
        q.soft_rank_over_bound().above(1),
        needs={"law": 3},
    ),
    Claim(
        "r-bound",
        "for Gaussian, uniform and Rademacher weights r, averaged over depth, is above"
        " √((1 − α) d), without skips and at γ ≤ 1 / (8 d)",
        "paper B, Theorem 14 (58)",
        q.r_over_bound().above(1),
        needs={"law": 3},
    ),
]

FIGURES_8_AND_9 = [
    Claim(
        "regularity-below-0.9",
        "the regularity constant α of the representations is below 0.9 at every width d > 10",
        "paper B, Appendix E, figure 8",
        q.alpha(f"d > 10 and {OF_THE_FIGURES}").below(0.9),
    ),
    Claim(
        "regularity-falls",
        "the regularity constant α of the representations decreases with the width d",
        "paper B, Appendix E, after Theorem 14",
        q.change_of_alpha(OF_THE_FIGURES).below(0),
    ),
    Claim(
        "norm-bound",
        "the mean of ‖M‖², where M = H Hᵀ / N, is below d^1.5 / √(1 − α)",
        "paper B, Lemma 13 (50), figure 9",
        q.norm_over_bound().below(1),
    ),
    Claim(
        "norm-growth",
        "the mean of ‖M‖², where M = H Hᵀ / N, grows no faster than d^1.5",
        "paper B, Appendix E, figure 9",
        q.exponent("‖M‖²", OF_THE_FIGURES).below(1.5),
        needs={"skip": 2},
    ),
]

FIGURE_3B = [
    Claim(
        "collinear-pulled-apart",
        "with batch norm and nearly parallel inputs the largest singular value falls quickly, and"
        " all others rise",
        "paper B, figure 3b, Example 9",
        [q.stretch("index == 1", 10).below(1), q.stretch("index > 1", 10).above(1)],
    )
]

LEMMA_3 = [
    Claim(
        "ratio-decays",
        "in linear residual networks without normalization log(σ₂ / σ₁) falls linearly with depth",
        "paper B, Lemma 3",
        [
            q.fall_a_layer().above(0),
            q.fall_beyond_half("second", "first").above(0),
            q.fall_beyond_half("first", "second").above(0),
        ],
    ),
    Claim(
        "rate-is-lyapunov-gap",
        "in linear residual networks without normalization log(σ₂ / σ₁) falls at the rate of the"
        " gap of the two largest Lyapunov exponents",
        "paper B, Section 3.2, footnote 6",
        q.fall_over_gap("gaussian").within(0.25, of=1),
    ),
    Claim(
        "matrix-converges",
        "in linear residual networks without normalization the matrix divided by its norm converges"
        " as the depth grows",
        "paper B, Lemma 3a as printed; its proof gives limit points only (Lemma 18)",
        q.step_late_over_early("gaussian").below(1 / 2),
    ),
]

LEMMA_7 = [
    Claim(
        "expansion",
        "for small γ a layer with batch norm changes ‖M‖², where M = H Hᵀ / N, by γ² δ_F(M)",
        "paper B, Lemma 7 (43)",
        q.beyond_expansion().within(0.02),
    ),
    Claim(
        "remainder",
        "the change of ‖M‖² over a layer, divided by γ², differs from δ_F(M) by O(γ)",
        "paper B, Lemma 7 (43)",
        q.exponent_of_remainder().above(1),
    ),
]

LIVE = [
    Claim(
        "other-laws-below",
        "inputs of lower rank end at a lower rank, so that inputs of full rank are needed",
        "paper B, Section 3.1, necessary assumption (i)",
        q.r_over_full().below(1),
    )
]

ONE = 1.5
"""Largest mean r that counts as rank one."""

THRESHOLDS = (0.1, 0.5, 0.9)

HALF = 0.5
"""Smallest σ₂ / σ₁ that counts as no collapse, at any depth."""

ASSUMPTIONS = [
    Claim(
        "soft-rank-bound",
        "for the thresholds τ = 0.1, 0.5 and 0.9 the soft rank, averaged over depth, is above the"
        " bound of Theorem 14",
        "paper B, Theorem 2 (5), Theorem 14 (58)",
        q.soft_rank_over_bound_at("gaussian").above(1),
    ),
    Claim(
        "soft-rank-growth",
        "for the thresholds τ = 0.1, 0.5 and 0.9 the soft rank, averaged over depth, grows at least"
        " as √d",
        "paper B, Theorem 2 (5)",
        [
            q.exponent("soft rank", f"law == 'gaussian' and tau == {tau}").above(1 / 2)
            for tau in THRESHOLDS
        ],
    ),
    Claim(
        "one-sign-collapses",
        "linear networks with batch norm lose their rank if the weights are not drawn with mean"
        " zero",
        "paper B, Section 3.1, necessary assumption (ii)",
        q.mean_r("asymmetric").below(ONE),
    ),
    Claim(
        "scaled-branch-keeps-rank",
        "residual networks without normalization escape the collapse if γ = O(1 / L), and do not"
        " at a constant γ",
        "paper B, Section 3.2",
        [
            q.ratio_behind("1 / L").above(HALF),
            q.ratio_behind("4 / L").above(HALF),
            q.ratio_behind("0.3", "L == L.max()").below(HALF),
        ],
    ),
]

CLAIMS = {
    "rank-fig3a": FIGURE_3A,
    "rank-fig3b": FIGURE_3B,
    "rank-fig8": FIGURES_8_AND_9,
    "rank-laws": LAWS,
    "rank-assumptions": ASSUMPTIONS,
    "rank-wide": [SOFT_RANK_GROWTH],
    "rank-lemma3": LEMMA_3,
    "rank-lemma7": LEMMA_7,
    "rank-live": LIVE,
}
