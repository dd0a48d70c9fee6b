"""Statements of paper B about very deep linear networks: Section 3, Appendix E, Theorem 14."""

from runner.papers.batch_norm_rank.rank_chain import quantities as q
from runner.results.claims import Claim

OF_THE_FIGURES = "(γ == 1 or γ == 0.1)"
"""Condition: γ is that of figures 8 and 9."""

SOFT_RANK_GROWTH = Claim(
    "soft-rank-growth",
    "the mean soft rank of linear networks with batch norm grows at least like √d with the width"
    " d, for every residual weight γ",
    "paper B, Section 3.1, figure 3a",
    q.exponent("soft rank").above(1 / 2),
)

FIGURE_3A = [
    Claim(
        "soft-rank-bound",
        "the soft rank of linear networks with batch norm, averaged over depth, is above the"
        " bound of Theorem 14",
        "paper B, Theorem 14 (58), figure 3a",
        q.soft_rank_over_bound().above(1),
    ),
    Claim(
        "r-bound",
        "in linear networks with batch norm, the mean over depth of r, a lower bound of the rank,"
        " is above √((1 − α) d) (α: regularity constant, d: width)",
        "paper B, Theorem 14 (58)",
        q.r_over_bound().above(1),
    ),
    SOFT_RANK_GROWTH,
    Claim(
        "r-growth",
        "in linear networks with batch norm, the mean of r, a lower bound of the rank, grows at"
        " least like √d with the width d, for every residual weight",
        "paper B, Theorem 2 (5)",
        q.exponent("r").above(1 / 2),
    ),
]

SMALL = "networks have no skip connections, or residual weights γ ≤ 1 / (8 d) (d: width)"

LAWS = [
    Claim(
        "soft-rank-bound",
        "for Gaussian, uniform and Rademacher weights, the mean soft rank of linear networks with"
        " batch norm is above the bound of Theorem 14",
        "paper B, Theorem 14 (58)",
        q.soft_rank_over_bound().above(1),
        needs={"law": 3},
        note=SMALL,
    ),
    Claim(
        "r-bound",
        "for Gaussian, uniform and Rademacher weights, batch norm keeps the mean of r, a lower"
        " bound of the rank, above √((1 − α) d) (α: regularity constant, d: width)",
        "paper B, Theorem 14 (58)",
        q.r_over_bound().above(1),
        needs={"law": 3},
        note=SMALL,
    ),
]

FIGURES_8_AND_9 = [
    Claim(
        "regularity-below-0.9",
        "in linear networks with batch norm the regularity constant α of the hidden layers is"
        " below 0.9 at every width d > 10",
        "paper B, Appendix E, figure 8",
        q.alpha(f"d > 10 and {OF_THE_FIGURES}").below(0.9),
    ),
    Claim(
        "regularity-falls",
        "in linear networks with batch norm the regularity constant α of the hidden layers"
        " decreases with the width d",
        "paper B, Appendix E, after Theorem 14",
        q.change_of_alpha(OF_THE_FIGURES).below(0),
    ),
    Claim(
        "norm-bound",
        "in linear networks with batch norm, the mean of ‖M‖² is below d^1.5/√(1−α) (M: second"
        " moments of the activations; d: width; α: regularity constant)",
        "paper B, Lemma 13 (50), figure 9",
        q.norm_over_bound().below(1),
    ),
    Claim(
        "norm-growth",
        "in linear networks with batch norm, the mean of ‖M‖² grows no faster than d^1.5 with the"
        " width d (M: second moments of the activations)",
        "paper B, Appendix E, figure 9",
        q.exponent("‖M‖²", OF_THE_FIGURES).below(1.5),
        needs={"skip": 2},
    ),
]

FIGURE_3B = [
    Claim(
        "collinear-pulled-apart",
        "from nearly parallel inputs, batch norm quickly lowers the largest singular value of"
        " the hidden layers and raises all others",
        "paper B, figure 3b, Example 9",
        [q.stretch("index == 1", 10).below(1), q.stretch("index > 1", 10).above(1)],
    )
]

LEMMA_3 = [
    Claim(
        "ratio-decays",
        "in linear residual networks without normalization, log(σ₂/σ₁) of the activations falls"
        " linearly with depth (σ₁, σ₂: largest two singular values)",
        "paper B, Lemma 3",
        [
            q.fall_a_layer().above(0),
            q.fall_beyond_half("second", "first").above(0),
            q.fall_beyond_half("first", "second").above(0),
        ],
    ),
    Claim(
        "rate-is-lyapunov-gap",
        "in linear residual networks without normalization, log(σ₂/σ₁) falls in each layer by the"
        " difference of the two largest Lyapunov exponents (σ₁, σ₂: largest singular values)",
        "paper B, Section 3.2, footnote 6",
        q.fall_over_gap("gaussian").within(0.25, of=1),
    ),
    Claim(
        "matrix-converges",
        "in linear residual networks without normalization, the matrix of activations, divided by"
        " its norm, converges as the depth grows",
        "paper B, Lemma 3a as printed; its proof gives limit points only (Lemma 18)",
        q.step_late_over_early("gaussian").below(1 / 2),
    ),
]

LEMMA_7 = [
    Claim(
        "expansion",
        "for small residual weights γ, linear layers with batch norm change ‖M‖² on average by"
        " γ² δ_F(M), where Eq. (43) defines δ_F (M: second moments of activations)",
        "paper B, Lemma 7 (43)",
        q.beyond_expansion().within(0.02),
    ),
    Claim(
        "remainder",
        "the mean change of ‖M‖² over a linear layer with batch norm, divided by γ², differs"
        " from the predicted δ_F(M) by O(γ) (γ: residual weight)",
        "paper B, Lemma 7 (43)",
        q.exponent_of_remainder().above(1),
    ),
]

LIVE = [
    Claim(
        "other-laws-below",
        "in linear networks with batch norm, inputs of lower rank lead to a lower r of deep layers"
        " (r: lower bound of the rank): inputs of full rank are needed",
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
        "at the thresholds 0.1, 0.5 and 0.9, the mean soft rank of linear networks with batch"
        " norm is above the bound of Theorem 14",
        "paper B, Theorem 2 (5), Theorem 14 (58)",
        q.soft_rank_over_bound_at("gaussian").above(1),
    ),
    Claim(
        "soft-rank-growth",
        "at the thresholds 0.1, 0.5 and 0.9, the mean soft rank of linear networks with batch"
        " norm grows at least like √d (d: width)",
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
        "linear residual networks of L layers without normalization escape the rank collapse at a"
        " residual weight γ = O(1/L), but not at a constant γ",
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
