"""Statements of paper D about deep linear networks."""

from runner.papers.bottleneck_structure.linear import quantities as q
from runner.papers.bottleneck_structure.theorem_claims import SIDES, violations
from runner.results.claims import Claim

SOURCE = "paper D, section 3"

CLAIMS = {
    "bottleneck-linear": [
        Claim(
            "cost-is-least",
            "a linear network of depth L for the matrix A has a squared parameter norm ‖θ‖² ≥"
            " R(A; L) = L ‖A‖^(2/L), with the Schatten norm of order 2/L",
            SOURCE,
            violations("linear").always("<=", 0),
            note=SIDES,
        ),
        Claim(
            "cost-is-attained",
            "linear networks of depth L trained with weight decay attain the smallest squared"
            " parameter norm for their matrix A, R(A; L) = L ‖A‖^(2/L) (Schatten norm)",
            SOURCE,
            q.excess().always("<", 1e-9),
            note="largest difference {value.max:.2g}, {value.count} networks, of which {zero.sum}"
            " are zero",
        ),
        Claim(
            "first-correction",
            "trained linear networks of depth L for a matrix A have the squared parameter norm L"
            " Rank A + 2 log |A|₊ + O(1/L) (|A|₊: product of the nonzero singular values)",
            SOURCE,
            q.exponent_of_remainder("after_first", 3).within(0.25, of=-1),
        ),
        Claim(
            "second-correction",
            "trained linear networks of depth L for a matrix A have the squared parameter norm L"
            " Rank A + 2 log |A|₊ + ‖log₊ AᵀA‖² / (2 L) + O(L⁻²) (|A|₊, log₊: of the nonzero"
            " singular values)",
            f"{SOURCE}, R⁽²⁾ of linear networks",
            q.exponent_of_remainder("after_second", 3).within(0.25, of=-2),
        ),
    ]
}
