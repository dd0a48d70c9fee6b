"""What survives of paper C's low rank in training as people do it: our statements.

The paper speaks of gradient flow and of its limit. What its invariants say of any finite time is
derived in `theory.remainder_bounds`. What a naive reading would expect, low rank at any gain, or
the same law under Adam, is a number in the figures.
"""

from runner.papers.training_invariances.low_rank_training.quantities import off_the_law, outside
from runner.papers.training_invariances.low_rank_training.tables import METHODS
from runner.results.claims import ours

ROUNDING = 1e-4
"""Of a remainder after thousands of steps in float32, relative."""
CLOSE = 0.05, 0.25
"""How near to exp(−2λT) the remainder is to fall, relative: two classes, more."""

GRADIENT_DESCENT, SGD, MOMENTUM, *_ = METHODS
INVARIANT = "from paper C, Theorem 1, item 1"

WITHOUT_DECAY = [
    ours(
        "band",
        "under gradient descent and SGD the invariants hold all singular values but the leading"
        " ones, at all times, between bounds from initialisation",
        f"{INVARIANT}, with Weyl and Ky Fan",
        outside((GRADIENT_DESCENT, SGD)).given("not diverged").always("<=", ROUNDING),
    ),
]

WITH_DECAY = [
    ours(
        "decay",
        "under SGD and momentum weight decay takes all singular values but the leading ones away as"
        " exp(−2λT)",
        INVARIANT,
        off_the_law((SGD, MOMENTUM), *CLOSE).given("not diverged").always("<=", 1),
        note="{left.min:.3g} to {left.max:.3g} times that",
    ),
]

CLAIMS = {"low-rank-training": WITHOUT_DECAY, "beyond-gradient-flow": WITH_DECAY}
