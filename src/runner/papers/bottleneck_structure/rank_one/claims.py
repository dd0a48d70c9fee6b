"""Statements of paper D about networks of rank 1 that fit data of a rank-2 function."""

from runner.papers.bottleneck_structure.rank_one import quantities as q
from runner.papers.bottleneck_structure.rank_one.tables import NORM_SLOPE
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
            "norm-lower-bound",
            "in rank-1 networks that fit N points of a rank-2 function, the squared parameter"
            " norm minus the depth grows at least like log N",
            "paper D, section 3.1, after Theorem 2 of its reference [10] (loose bound)",
            q.slope("excess").given("sizes >= 3").above(NORM_SLOPE),
            note="for a function of rank k*, the paper's bound is 2 (1 − 1/k*) log N",
        ),
        Claim(
            "ntk-blows-up",
            "for networks of rank 1 that fit N points, the largest tangent kernel grows with N",
            "paper D, section 4.1",
            q.slope("log_ntk").given("sizes >= 3").above(0),
        ),
    ]
}
