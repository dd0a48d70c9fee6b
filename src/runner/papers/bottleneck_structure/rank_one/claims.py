"""What paper D says of rank-1 interpolants."""

from runner.papers.bottleneck_structure.rank_one import quantities as q
from runner.papers.bottleneck_structure.rank_one.tables import NORM_SLOPE, NTK_EXPONENT
from runner.results.claims import Claim, illustration

CLAIMS = {
    "bottleneck-theorems": [
        Claim(
            "interpolants-are-rare",
            "gradient descent finds fewer rank-1 interpolants the more points there are",
            "paper D, sections 3.1 and 4.1",
            q.slope_of_fitting().below(0),
        ),
        illustration(
            "ntk-lower-bound",
            "somewhere Θ(x, x) ≥ c L e^(−c₁) N^(4 − 4/k*) for rank-1 interpolants",
            "paper D, Theorem 10 (far from tight; its proof asks for L above e^(c₁ + 1))",
            q.slope("log_ntk_plus_excess").given("sizes >= 3").above(NTK_EXPONENT),
        ),
        illustration(
            "norm-lower-bound",
            "the norm of rank-1 interpolants grows at least as 2 (1 − 1/k*) log N",
            "paper D, section 3.1, after Theorem 2 of its reference [10] (far from tight)",
            q.slope("excess").given("sizes >= 3").above(NORM_SLOPE),
        ),
        Claim(
            "ntk-blows-up",
            "the largest NTK of rank-1 interpolants grows with N: narrow minima",
            "paper D, section 4.1",
            q.slope("log_ntk").given("sizes >= 3").above(0),
        ),
    ]
}
