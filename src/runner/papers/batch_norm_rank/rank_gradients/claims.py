"""Additional claims about the gradients of random networks with batch norm.

The bounds are plain margins: a factor of two, a factor of 1,000, and √d as in the paper.
"""

from runner.papers.batch_norm_rank.rank_gradients import quantities as q
from runner.results.claims import ours

RELU, PLAIN = "ReLU, batch norm", "ReLU, plain"
LINEAR = "linear, batch norm"
ORTHOGONAL = "linear, batch norm, orthogonal weights"

DEEPEST = "L == L.max()"
SQUARE = "d == N"
"""Condition: the width equals the batch size, as in the theory of orthogonal weights.

The samples are then linearly independent.
"""

ONE = 1.5
"""Largest r that counts as rank one."""

YANG = "supplementary to paper B, Section 3; Yang et al. 2019"
METEREZ = "supplementary to paper B, Section 3; Meterez et al. 2024"
DANESHMAND = "supplementary to paper B, Section 3; Daneshmand, Joudaki, Bach 2021"

CLAIMS = {
    "rank-gradients": [
        ours(
            "relu-gradients-explode",
            "in deep wide ReLU networks with batch norm the gradient norm of the first hidden layer"
            " is more than 1,000 times that of the last, while the rank stays above √d",
            YANG,
            [
                q.first_over_last(RELU, f"{DEEPEST} and d >= N").above(1000),
                q.over_root("matrix_rank", RELU).above(1),
            ],
        ),
        ours(
            "relu-gradients-at-theory",
            "in deep wide ReLU networks with batch norm the growth of the gradient norm over all"
            " layers is within a factor of two of the growth in infinitely wide networks with large"
            " batches, √(π / (π − 1)) = 1.21 per layer",
            YANG,
            [
                q.factor_over_theory(RELU, f"{DEEPEST} and d >= N").above(1 / 2),
                q.factor_over_theory(RELU, f"{DEEPEST} and d >= N").below(2),
            ],
        ),
        ours(
            "plain-keeps-gradients-loses-rank",
            "in deep plain ReLU networks of He's initialization r falls to one, and the gradient"
            " norm of the first hidden layer is less than 1,000 times that of the last",
            YANG,
            [
                q.r(PLAIN, f"{DEEPEST} and {SQUARE}").below(ONE),
                q.first_over_last(PLAIN, DEEPEST).below(1000),
            ],
        ),
        ours(
            "orthogonal-weights-keep-both",
            "in linear networks with batch norm and orthogonal weights, as wide as the batch is"
            " large, r stays above √d, and the gradient norm changes by less than a factor of two",
            METEREZ,
            [
                q.first_over_last(ORTHOGONAL, SQUARE).above(1 / 2),
                q.first_over_last(ORTHOGONAL, SQUARE).below(2),
                q.over_root("rank_bound", ORTHOGONAL, SQUARE).above(1),
            ],
        ),
        ours(
            "gap-falls-with-width",
            "in deep linear networks with batch norm and Gaussian weights the samples are closer to"
            " orthogonal at twice the width",
            DANESHMAND,
            q.gap_over_half_width(LINEAR, DEEPEST).below(1),
        ),
    ],
}
