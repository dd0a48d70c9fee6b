"""Statements of paper D about networks of rank 1 that fit data of a rank-2 function."""

from runner.papers.bottleneck_structure.rank_one import quantities as q
from runner.papers.bottleneck_structure.rank_one.tables import NORM_SLOPE, NTK_EXPONENT
from runner.results.claims import Claim, illustration

CLAIMS = {
    "bottleneck-theorems": [
        Claim(
            "interpolants-are-rare",
            "with more training points, gradient descent finds fewer networks of rank 1 that fit"
            " the points",
            "paper D, sections 3.1 and 4.1",
            q.slope_of_fitting().below(0),
        ),
        illustration(
            "ntk-lower-bound",
            "networks of rank 1 and depth L that fit N points of a rank-k* function have a"
            " tangent kernel of at least c L e^(L − ‖θ‖²) N^(4 − 4/k*) at some point (c: a"
            " constant, ‖θ‖²: squared parameter norm)",
            "paper D, Theorem 10 (loose bound; its proof assumes L above e^(c₁ + 1))",
            q.slope("log_ntk_plus_excess").given("sizes >= 3").above(NTK_EXPONENT),
        ),
        illustration(
            "norm-lower-bound",
            "for networks of rank 1 and depth L that fit N points of a rank-k* function, the"
            " squared parameter norm minus L grows at least like 2 (1 − 1/k*) log N",
            "paper D, section 3.1, after Theorem 2 of its reference [10] (loose bound)",
            q.slope("excess").given("sizes >= 3").above(NORM_SLOPE),
        ),
        Claim(
            "ntk-blows-up",
            "for networks of rank 1 that fit N points, the largest tangent kernel grows with N",
            "paper D, section 4.1",
            q.slope("log_ntk").given("sizes >= 3").above(0),
        ),
    ]
}
