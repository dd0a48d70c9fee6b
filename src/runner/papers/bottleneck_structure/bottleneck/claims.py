"""Statements of paper D about figure 1: best solutions of many depths, and networks as trained."""

from runner.papers.bottleneck_structure.bottleneck import quantities as q
from runner.papers.bottleneck_structure.bottleneck.tables import (
    ENOUGH,
    RANK,
    STRICT,
    ZERO,
)
from runner.papers.bottleneck_structure.fits import FITTED
from runner.papers.bottleneck_structure.theorem_claims import THEOREMS
from runner.results.claims import Claim, Kind
from runner.results.quantities import Rule

CAPTION = "paper D, figure 1 and section 3.1"

LONG = f"depths >= {ENOUGH}"
"""Condition: a range has enough depths for a line."""

DOUBT = (
    "the losses of the best two solutions of a depth differ by {doubt.median:.2%} (median), at most"
    " by {doubt.max:.2%}"
)
"""Printed uncertainty: by how much the loss of a best solution may be too high."""

NEVER = "paper D, section 3.1 (fitting minima that underestimate the rank: never observed)"


PREDICTED = 0.25
"""Largest relative error of the predicted shortfall. In eight other tasks it was 0.06 to 0.22."""


def near_one(recipe: str) -> Rule:
    """Return the rule that k singular values are near 1. recipe: such as "minimum".

    By the definition of the rank k, value k + 1 of the middle layer is below 0.1.
    """
    return q.share_of_values(1, "i <= k", recipe).above(0.9)


FIGURE_1 = [
    Claim(
        "affine-norm",
        "over depths at which the rank is the same, the squared parameter norm of figure 1's best"
        " solutions is nearly affine in the depth",
        CAPTION,
        q.off_the_line("minimum").given(LONG).below(0.1),
        note="R² of the line is {r2.min:.4f} to {r2.max:.4f}",
    ),
    Claim(
        "slope-is-rank",
        "over depths at which the rank is the same, each further layer adds the rank to the"
        " squared parameter norm of figure 1's best solutions",
        CAPTION,
        q.slope_over_rank().given("fit").within(0.1, of=1),
        note="the slopes are {slope.min:.2f} to {slope.max:.2f}; in searches from separate"
        " initializations, each further layer adds {own.median:.2f} times the weight decay to the"
        f" loss (median); {DOUBT}",
    ),
    Claim(
        "slope-tends-to-rank",
        "over depths at which the rank is the same, figure 1's smallest loss / λ has a slope"
        " tending to the rank (λ: weight decay)",
        CAPTION,
        [q.distance_to_rank().given("fit").below(0.1), q.rise_of_slope().given("fit").above(0)],
        note="the first slopes are {first.min:.3f} to {first.max:.3f} and the last ones"
        " {last.min:.3f} to {last.max:.3f}; in {same.sum} of {same.count} tasks the Jacobian of the"
        " deepest network and its layer of least rank have the same rank",
    ),
    Claim(
        "first-correction",
        "figure 1's best solutions have the squared parameter norm k L + R₁ + R₂/L while their rank"
        " k stays the same: norms at depths up to 14 predict the slope at larger depths L",
        "paper D, section 1.1 and section 3",
        q.shortfall_over_predicted().given("fit").within(PREDICTED, of=1),
        note="the fitted R₁ are {R1.min:.1f} to {R1.max:.1f} and the fitted R₂ {R2.min:.0f} to"
        " {R2.max:.0f}",
    ),
    Claim(
        "rank-falls",
        "the best solutions found for figure 1's task have a smaller rank at larger depths",
        CAPTION,
        q.correlation_with_depth("minimum").below(0),
    ),
    Claim(
        "singular-values",
        "in the middle layers of figure 1's best solutions, the k largest singular values"
        " are close to 1 (k: rank)",
        "paper D, section 4, figure 1b",
        near_one("minimum"),
    ),
    Claim(
        "distance-to-one",
        "in the middle layer of figure 1's best solutions, the k largest singular values are"
        " within O(1/√L) of one (k: rank, L: depth)",
        "paper D, abstract and section 1.1",
        q.decay_of_distance().given("fit").below(-1 / 2),
    ),
    Claim(
        "only-the-middle-grows",
        "over depths at which the rank is the same, all further layers of figure 1's best solutions"
        " belong to their low-rank middle",
        "paper D, figure 1b",
        q.layers_outside("minimum").given(LONG).below(1 / 2),
    ),
    Claim(
        "same-function",
        "over depths at which the rank is the same, figure 1's best solutions of successive depths"
        " are about the same function",
        "paper D, section 3.1",
        q.moved_over_error().below(0.1),
        note="test errors {test_cost.min:.3f} to {test_cost.max:.3f}; the search also moves"
        " solutions from depth to depth",
    ),
    Claim(
        "relu-changes-nothing",
        "in the bottleneck of figure 1's best solutions, pre-activations are nonnegative, so that"
        " the ReLU changes nothing",
        "paper D, section 3.3",
        q.share_of_negative().below(0.01),
        note="in the first layer it is {first.median:.2g} (median)",
    ),
]

REPRESENTATIONS = Claim(
    "representations-low-rank",
    "in the middle layers of the best solutions found for figure 1's task, representations are"
    " nearly k-dimensional (k: rank)",
    "paper D, section 4, Corollary 8",
    q.middle_over_ends().given("fit").below(0.1),
    note="the medians of singular value k + 1 are {first.median:.2g} in the first layer,"
    " {middle.median:.2g} in the middle one and {last.median:.2g} in the last; the trace of the"
    " tangent kernel grows like L^{power.median:.2f} (L: depth)",
)

AS_TRAINED: dict[str, tuple[str, str, Kind]] = {
    "trained": ("plain", "after ordinary training on figure 1's task", "paper"),
    "annealed": ("annealed", "after annealed training on figure 1's task", "ours"),
}
"""Recipe, words and kind of claims about networks as trained, by the end of the claims' names."""


def norms_as_trained(end: str) -> list[Claim]:
    """Return the claims about parameter norms (figure 1a) of networks after one kind of training.

    end: as for `spectra_as_trained`.
    """
    recipe, after, kind = AS_TRAINED[end]
    return [
        Claim(
            f"affine-norm-{end}",
            f"{after}, the squared parameter norm is nearly affine in the depth while the rank"
            " stays the same",
            CAPTION,
            q.off_the_line(recipe).given(LONG).below(0.1),
            kind,
            note="R² of the line is {r2.min:.3f} to {r2.max:.3f}",
        ),
        Claim(
            f"slope-is-rank-{end}",
            f"{after}, each further layer adds the rank to the squared parameter norm while the"
            " rank stays the same",
            CAPTION,
            q.trained_slope_over_rank(recipe).given(LONG).within(0.1, of=1),
            kind,
            note="the slopes are {slope.min:.2f} to {slope.max:.2f}",
        ),
        Claim(
            f"rank-falls-{end}",
            f"{after}, networks that fit the data have a smaller rank at larger depths",
            CAPTION,
            q.correlation_with_depth(recipe).below(0),
            kind,
        ),
    ]


def spectra_as_trained(end: str) -> list[Claim]:
    """Return the claims about singular values (figure 1b) of networks after one kind of training.

    The other claims of figure 1b are about the best solutions found. end: the last word of the
    claims' names, "trained" for ordinary training or "annealed" for annealed training.
    """
    recipe, after, kind = AS_TRAINED[end]
    return [
        Claim(
            f"singular-values-{end}",
            f"{after}, in the middle layers the k largest singular values are close to 1 (k: rank)",
            "paper D, section 4, figure 1b",
            near_one(recipe),
            kind,
        ),
        Claim(
            f"only-the-middle-grows-{end}",
            f"{after}, all further layers belong to the low-rank middle of the networks while the"
            " rank stays the same",
            "paper D, figure 1b",
            q.layers_outside(recipe).given(LONG).below(1 / 2),
            kind,
        ),
    ]


BELOW = (
    "{value.sum} of the {fits.sum} networks that fit have a rank below the task's, and so have"
    f" {{strict_below.sum}} of the {{strict.sum}} with a training error below {STRICT}"
)
"""Printed numbers of networks below the rank of the task, for two thresholds of a fit."""

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
        q.fits_below(RANK, "minimum").always("=", 0),
        note=BELOW,
    ),
    Claim(
        "no-rank-1-fit-trained",
        "after ordinary training on figure 1's task, no network fits the data with a rank below"
        " the rank of the task",
        NEVER,
        q.fits_below(RANK, "plain").always("=", 0),
        note=BELOW,
    ),
]

CLAIMS = {
    "bottleneck-fig1": [
        *FIGURE_1,
        *spectra_as_trained("trained"),
        *spectra_as_trained("annealed"),
        REPRESENTATIONS,
        *THEOREMS,
    ],
    "bottleneck-recipes": [*norms_as_trained("trained"), *norms_as_trained("annealed"), *RECIPES],
}
