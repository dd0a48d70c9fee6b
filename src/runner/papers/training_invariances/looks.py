"""Colors and markers of statements, layers and methods in all figures of paper C.

Blue is what the paper says is conserved, vermilion what is not.
"""

from runner.results.style import BLUE, DASHED, GREEN, INK, ORANGE, PURPLE, VERMILION, Look

INVARIANT, NOT_INVARIANT = Look(BLUE), Look(VERMILION, "s")

METHODS = {
    "gradient descent": Look(INK),
    "SGD": Look(BLUE, "s"),
    "momentum": Look(ORANGE, "^"),
    "AdamW": Look(PURPLE, "v"),
    "Adam": Look(VERMILION, "D"),
}

KINDS = {
    "dense": Look(BLUE, "", width=1.4),
    "residual_free": Look(GREEN, "", DASHED, 1.4),
    "conv": Look(VERMILION, "", width=1.4),
}
"""Of layers: fully connected, free residual blocks, convolutions."""

SQUARES = {"remainder": Look(BLUE, "s"), "top": Look(VERMILION, "o", DASHED)}
"""Of squared singular values: all but the largest, and the largest."""
