"""Statements of paper D about deep linear networks."""

from runner.papers.bottleneck_structure.linear import quantities as q
from runner.papers.bottleneck_structure.theorem_claims import SIDES, violations
from runner.results.claims import Claim

SOURCE = "paper D, section 3"

CLAIMS = {
    "bottleneck-linear": [
        Claim(
            "cost-is-least",
            "a linear network of depth L that equals the matrix A has ‖θ‖² ≥ L ‖A‖^(2/L) (θ:"
            " parameters; Schatten norm of order 2/L)",
            SOURCE,
            violations("linear").always("<=", 0),
            note=SIDES,
        ),
        Claim(
            "cost-is-attained",
            "linear networks of depth L trained with weight decay attain L ‖A‖^(2/L), the smallest"
            " squared parameter norm for their matrix A (Schatten norm of order 2/L)",
            SOURCE,
            q.excess().always("<", 1e-9),
            note="{zero.sum} of the {value.count} networks are zero",
        ),
        Claim(
            "first-correction",
            "trained linear networks of depth L have the squared parameter norm Σ (L + 2 log s) +"
            " O(1/L), a sum over the nonzero singular values s of their matrix",
            SOURCE,
            q.exponent_of_remainder("after_first", 3).within(0.25, of=-1),
        ),
        Claim(
            "second-correction",
            "trained linear networks of depth L have the squared parameter norm Σ (L + 2 log s +"
            " 2 (log s)²/L) + O(L⁻²), a sum over the nonzero singular values s of their matrix",
            f"{SOURCE}, R⁽²⁾ of linear networks",
            q.exponent_of_remainder("after_second", 3).within(0.25, of=-2),
            note="the paper writes this sum as L Rank A + 2 log |A|₊ + ‖log₊ AᵀA‖² / (2 L)",
        ),
    ]
}
