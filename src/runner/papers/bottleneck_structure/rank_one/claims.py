"""Statements of paper D about networks of rank 1 that fit data of a rank-2 function."""

from runner.papers.bottleneck_structure.rank_one import quantities as q
from runner.papers.bottleneck_structure.rank_one.tables import NORM_SLOPE, NTK_EXPONENT
from runner.results.claims import Claim, illustration

CLAIMS = {
    "bottleneck-theorems": [
        Claim(
            "interpolants-are-rare",
            "with more training points, gradient descent finds fewer networks of rank 1 that fit"
            " them",
            "paper D, sections 3.1 and 4.1",
            q.slope_of_fitting().below(0),
        ),
        illustration(
            "ntk-lower-bound",
            "networks of rank 1 that fit N points have Θ(x, x) ≥ c L e^(−c₁) N^(4 − 4/k*) at"
            " some x",
            "paper D, Theorem 10 (loose bound; its proof assumes L above e^(c₁ + 1))",
            q.slope("log_ntk_plus_excess").given("sizes >= 3").above(NTK_EXPONENT),
        ),
        illustration(
            "norm-lower-bound",
            "‖θ‖² − L of networks of rank 1 that fit N points grows at least like 2 (1 −"
            " 1/k*) log N",
            "paper D, section 3.1, after Theorem 2 of its reference [10] (loose bound)",
            q.slope("excess").given("sizes >= 3").above(NORM_SLOPE),
        ),
        Claim(
            "ntk-blows-up",
            "the largest tangent kernel of networks of rank 1 that fit N points grows with N",
            "paper D, section 4.1",
            q.slope("log_ntk").given("sizes >= 3").above(0),
        ),
    ]
}
