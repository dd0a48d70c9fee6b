"""Statements of paper D about figure 1: the best solutions of many depths, and training."""

from runner.papers.bottleneck_structure.bottleneck import quantities as q
from runner.papers.bottleneck_structure.bottleneck.tables import ENOUGH, FITTED
from runner.papers.bottleneck_structure.theorem_claims import THEOREMS
from runner.results.claims import Claim

CAPTION = "paper D, figure 1 and section 3.1"
TRUE_RANK = 2
"""Rank k* of the task of figure 1."""

LONG = f"depths >= {ENOUGH}"
"""Condition: a range has enough depths for a line."""

DOUBT = (
    "the losses of the best two solutions of a depth differ by {doubt.median:.2%} (median), at most"
    " by {doubt.max:.2%}"
)
"""Printed uncertainty: by how much the loss of a best solution may be too high."""

ZERO = 0.01
"""Bound on ‖θ‖² below which a network counts as zero."""

NEVER = "paper D, section 3.1 (fitting minima that underestimate the rank: never observed)"

FIGURE_1 = [
    Claim(
        "affine-norm",
        "over depths at which the rank is the same, the squared parameter norm of figure 1's best"
        " solutions is nearly affine in the depth",
        CAPTION,
        q.power_of_depth().given("fit").within(0.25, of=1),
        note=DOUBT,
    ),
    Claim(
        "slope-is-rank",
        "over depths at which the rank is the same, each further layer adds the rank to the"
        " squared parameter norm of figure 1's best solutions",
        CAPTION,
        q.slope_over_rank().given("fit").within(0.1, of=1),
        note="slopes {slope.min:.2f} to {slope.max:.2f}; in searches from separate"
        " initializations a further layer adds {own.median:.2f} λ to the loss (median; λ:"
        " weight decay)",
    ),
    Claim(
        "slope-tends-to-rank",
        "over depths at which the rank is the same, figure 1's smallest loss / λ has a slope"
        " tending to the rank (λ: weight decay)",
        CAPTION,
        [q.distance_to_rank().given("fit").below(0.1), q.rise_of_slope().given("fit").above(0)],
        note="first slopes {first.min:.3f} to {first.max:.3f}, last slopes {last.min:.3f} to"
        " {last.max:.3f}",
    ),
    Claim(
        "first-correction",
        "figure 1's best solutions nearly have the squared parameter norm k L + R₁ + R₂/L while"
        " their rank k stays the same (L: depth)",
        "paper D, section 1.1 and section 3",
        q.left_by_expansion().given("fit").below(0.1),
        note="constants R₁ {R1.min:.1f} to {R1.max:.1f}, R₂ {R2.min:.0f} to {R2.max:.0f}",
    ),
    Claim(
        "rank-falls",
        "the best solutions found for figure 1's task have a smaller rank at larger depths",
        CAPTION,
        q.correlation_with_depth().given("fit").below(0),
    ),
    Claim(
        "singular-values",
        "in the middle layers of figure 1's best solutions, k singular values are close to 1 and"
        " the others are small (k: rank)",
        "paper D, section 4, figure 1b",
        [
            q.share_of_values(1, "i <= k").given("fit").above(0.9),
            q.share_of_values(0, "i == k + 1").given("fit").above(0.9),
        ],
    ),
    Claim(
        "distance-to-one",
        "in the middle layer of figure 1's best solutions, the k largest singular values are"
        " within O(1/√L) of one (k: rank, L: depth)",
        "paper D, abstract and section 1.1",
        q.decay_of_distance().given("fit").below(-1 / 2),
    ),
    Claim(
        "ntk-of-order-depth",
        "for the best solutions found for figure 1's task, the trace of the tangent kernel grows"
        " linearly with the depth",
        "paper D, section 4",
        q.growth_of_ntk().given("fit").within(0.25, of=1),
        note="trace of the tangent kernel / depth: {first.median:.3g} at the first depth of the"
        " range, {last.median:.3g} at the last depth (medians)",
    ),
    Claim(
        "only-the-middle-grows",
        "over depths at which the rank is the same, figure 1's best solutions gain layers only in"
        " their low-rank middle",
        "paper D, figure 1b",
        q.layers_outside().given("fit").below(1 / 2),
    ),
]

REPRESENTATIONS = Claim(
    "representations-low-rank",
    "in the middle layers of the best solutions found for figure 1's task, representations are"
    " nearly k-dimensional (k: rank)",
    "paper D, section 4, Corollary 8",
    q.middle_over_ends().given("fit").below(0.1),
    note="singular value k + 1, medians: {first.median:.2g} in the first layer, {middle.median:.2g}"
    " in the middle, {last.median:.2g} in the last",
)

TRAINED = [
    Claim(
        "affine-norm-trained",
        "after ordinary training on figure 1's task, the squared parameter norm is nearly affine"
        " in the depth while the rank stays the same",
        CAPTION,
        q.off_the_line().given(LONG).below(0.1),
        note="R² from {r2.min:.3f} to {r2.max:.3f}",
    ),
    Claim(
        "slope-is-rank-trained",
        "after ordinary training on figure 1's task, each further layer adds the rank to the"
        " squared parameter norm while the rank stays the same",
        CAPTION,
        q.trained_slope_over_rank().given(LONG).within(0.1, of=1),
        note="slopes {slope.min:.2f} to {slope.max:.2f}",
    ),
    Claim(
        "rank-falls-trained",
        "after ordinary training on figure 1's task, networks that fit the data have a smaller"
        " rank at larger depths",
        CAPTION,
        q.trained_correlation_with_depth().below(0),
    ),
]

RECIPES = [
    Claim(
        "training-fails-deep",
        "ordinary training on figure 1's task fails at large depth: all parameters become zero",
        CAPTION,
        [
            q.norm("plain", "L == L.max()").below(ZERO),
            q.norm("plain", "L == L.min()").above(ZERO),
        ],
    ),
    Claim(
        "small-ridge-fits",
        "on figure 1's task, a small enough weight decay λ avoids solutions that do not fit the"
        " data",
        "paper D, section 3.1",
        [
            q.cost_by_ridge("λ == λ.max()").above(FITTED),
            q.cost_by_ridge("λ == λ.min()").below(FITTED),
        ],
    ),
    Claim(
        "no-rank-1-fit",
        "no best solution found for figure 1's task fits the data with a rank below the rank of"
        " the task",
        NEVER,
        q.fits_below(TRUE_RANK, "minimum").always("=", 0),
        note="{value.sum} of {fits.sum} networks that fit have such a rank",
    ),
    Claim(
        "no-rank-1-fit-trained",
        "after ordinary training on figure 1's task, no network fits the data with a rank below"
        " the rank of the task",
        NEVER,
        q.fits_below(TRUE_RANK, "plain").always("=", 0),
        note="{value.sum} of {fits.sum} networks that fit have such a rank",
    ),
]

CLAIMS = {
    "bottleneck-fig1": [*FIGURE_1, REPRESENTATIONS, *THEOREMS],
    "bottleneck-recipes": [*TRAINED, *RECIPES],
}
