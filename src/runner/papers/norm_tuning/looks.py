"""How methods and theorems look in all figures of paper A.

The hue is the family's: blue where scales and shifts are trained, green where they are set from the
target, orange where from a dense network, black for a dense network. Ours are hollow.
"""

from runner.results.style import (
    BLUE,
    DASHED,
    GREEN,
    GREY,
    INK,
    NAVY,
    OLIVE,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Look,
)

METHODS = {
    "sgd": Look(BLUE),
    "sgd with fixed statistics": Look(SKY, dashes=DASHED, hollow=True),
    "adam": Look(NAVY, "D", hollow=True),
    "teacher construction": Look(GREEN, "s", width=3.4),
    "corrected construction": Look(OLIVE, "s", DASHED, hollow=True),
    "student construction": Look(ORANGE, "", width=6.0),
    "dense": Look("#000000", "^", DASHED, 1.8),
    "dense by adam": Look(GREY, "^", DASHED, 1.8, hollow=True),
}
"""By the series of figures 4 and 5; what may lie on others is thin or dashed."""

OPTIMIZERS = {
    "sgd": METHODS["sgd"],
    "momentum": Look(PURPLE, "s", hollow=True),
    "adam": METHODS["adam"],
}

SGD, CONSTRUCTION, DENSE = (METHODS[name] for name in ("sgd", "teacher construction", "dense"))
BATCH_STATISTICS, LAYER_NORM, LEAST = Look(SKY), Look(VERMILION, "D"), Look(INK)

THEOREMS = {
    "sparse": Look("#8a8a8a"),
    "low_rank": Look(NAVY),
    "wide": CONSTRUCTION,
    "deep": Look(PURPLE, "D"),
}
"""Those of many networks first, below the others."""
