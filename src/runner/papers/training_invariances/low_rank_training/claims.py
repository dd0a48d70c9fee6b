"""Additional claims: consequences of paper C's invariants for ordinary training.

The paper is about gradient flow and its limit. The function `theory.remainder_bounds` derives
bounds at any finite time from the invariants.
"""

from runner.papers.training_invariances.low_rank_training.quantities import off_the_law, outside
from runner.papers.training_invariances.low_rank_training.tables import METHODS
from runner.results.claims import ours

ROUNDING = 1e-4
"""Largest relative rounding error of a remainder after thousands of steps in float32."""
CLOSE = 0.05, 0.25
"""Largest relative difference of the remainder from exp(−2λT): for two classes, for more."""

GRADIENT_DESCENT, SGD, MOMENTUM, *_ = METHODS
INVARIANT = "from paper C, Theorem 1, item 1"

WITHOUT_DECAY = [
    ours(
        "band",
        "under gradient descent and SGD, the sum of the squared singular values of each of the last"
        " linear layers, without the leading ones, stays between bounds that are known at"
        " initialization",
        f"{INVARIANT}, with Weyl and Ky Fan",
        outside((GRADIENT_DESCENT, SGD)).given("not diverged").always("<=", ROUNDING),
    ),
]

WITH_DECAY = [
    ours(
        "decay",
        "with SGD and momentum, weight decay λ multiplies the sum of the squared singular values of"
        " each of the last linear layers, without the leading ones, by exp(−2λT) in time T",
        INVARIANT,
        off_the_law((SGD, MOMENTUM), *CLOSE).given("not diverged").always("<=", 1),
        note="the sum is {left.min:.3g} to {left.max:.3g} times the prediction",
    ),
]

CLAIMS = {"low-rank-training": WITHOUT_DECAY, "beyond-gradient-flow": WITH_DECAY}
