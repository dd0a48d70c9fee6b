"""What paper D says of figure 1: minima and training of networks of many depths."""

from runner.papers.bottleneck_structure.bottleneck import quantities as q
from runner.papers.bottleneck_structure.bottleneck.tables import FITTED
from runner.papers.bottleneck_structure.theorem_claims import THEOREMS
from runner.results.claims import Claim

CAPTION = "paper D, figure 1 and section 3.1"
TRUE_RANK = 2
"""k* of the task of figure 1."""

DOUBT = "the best two of a depth differ by {doubt.median:.2%}, at most by {doubt.max:.2%}"
"""What every number of a minimum may be off by."""

ZERO = 0.01
"""‖θ‖² of a network that is zero: it costs 1, so that it has no reason to keep parameters."""

NEVER = "paper D, section 3.1: fitting rank-underestimating minima have never been observed"

FIGURE_1 = [
    Claim(
        "affine-norm",
        "within a range of depths of equal rank ‖θ‖² is well approximated by an affine function",
        CAPTION,
        q.power_of_depth().given("fit").within(0.25, of=1),
        note=DOUBT,
    ),
    Claim(
        "slope-is-rank",
        "within each range of depths of equal rank the slope of the norm is the rank",
        CAPTION,
        q.slope_over_rank().given("fit").within(0.1, of=1),
        note="slopes {slope.min:.2f} to {slope.max:.2f}; from own starts alone a layer adds"
        " {own.median:.2f} λ (median)",
    ),
    Claim(
        "slope-tends-to-rank",
        "within a range of depths of equal rank the slope of the norm tends to the rank",
        CAPTION,
        [q.distance_to_rank().given("fit").below(0.1), q.rise_of_slope().given("fit").above(0)],
        note="slopes: first {first.min:.3f} to {first.max:.3f}, last {last.min:.3f} to"
        " {last.max:.3f}",
    ),
    Claim(
        "first-correction",
        "within a range of depths of equal rank ‖θ‖² = k L + R₁ + R₂/L, to higher order",
        "paper D, section 1.1 and section 3",
        q.left_by_expansion().given("fit").below(0.1),
        note="R₁ {R1.min:.1f} to {R1.max:.1f}, R₂ {R2.min:.0f} to {R2.max:.0f}",
    ),
    Claim(
        "rank-falls",
        "larger depths lead to smaller ranks",
        CAPTION,
        q.correlation_with_depth().given("fit").below(0),
    ),
    Claim(
        "singular-values",
        "inside the bottleneck k singular values are close to 1, the others small",
        "paper D, section 4, figure 1b",
        [
            q.share_of_values(1, "i <= k").given("fit").above(0.9),
            q.share_of_values(0, "i == k + 1").given("fit").above(0.9),
        ],
    ),
    Claim(
        "distance-to-one",
        "in the middle the k singular values are within O(1/√L) of one",
        "paper D, abstract and section 1.1",
        q.decay_of_distance().given("fit").below(-1 / 2),
    ),
    Claim(
        "ntk-of-order-depth",
        "minima have a tangent kernel of order L, the normal size",
        "paper D, section 4",
        q.growth_of_ntk().given("fit").within(0.5, of=1),
        note="Tr Θ / L {over_depth.median:.3g} (median)",
    ),
    Claim(
        "only-the-middle-grows",
        "through a range of depths of equal rank only the middle low-rank part grows",
        "paper D, figure 1b",
        q.layers_outside().given("fit").below(1 / 2),
    ),
]

REPRESENTATIONS = Claim(
    "representations-low-rank",
    "the representations in the middle of deep networks are nearly k-dimensional",
    "paper D, section 4, Corollary 8",
    q.middle_over_ends().given("fit").below(0.1),
    note="medians: first {first.median:.2g}, middle {middle.median:.2g}, last {last.median:.2g}",
)

RECIPES = [
    Claim(
        "training-fails-deep",
        "at large depth training fails and recovers zero parameters",
        CAPTION,
        [
            q.norm("plain", "L == L.max()").below(ZERO),
            q.norm("plain", "L == L.min()").above(ZERO),
        ],
    ),
    Claim(
        "small-ridge-fits",
        "minima that do not fit are avoided by a small enough ridge",
        "paper D, section 3.1",
        [
            q.cost_by_ridge("λ == λ.max()").above(FITTED),
            q.cost_by_ridge("λ == λ.min()").below(FITTED),
        ],
    ),
    Claim(
        "no-rank-1-fit",
        "of the lowest losses that were found none fits with a rank below the true one",
        NEVER,
        q.fits_below(TRUE_RANK, "minimum").always("=", 0),
        note="{value.sum} of {fits.sum} that fit",
    ),
    Claim(
        "no-rank-1-fit-trained",
        "of the networks as trained none fits with a rank below the true one",
        NEVER,
        q.fits_below(TRUE_RANK, "plain").always("=", 0),
        note="{value.sum} of {fits.sum} that fit",
    ),
]

CLAIMS = {
    "bottleneck-fig1": [*FIGURE_1, REPRESENTATIONS, *THEOREMS],
    "bottleneck-recipes": RECIPES,
}
