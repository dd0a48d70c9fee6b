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
    "dense": Look(INK, "", width=1.4),
    "residual_free": Look(GREEN, "", DASHED, 1.8),
    "conv": Look(PURPLE, "", width=1.4),
}
"""Of layers: fully connected, residual blocks with a trained skip, convolutions."""

SQUARES = {"remainder": Look(BLUE, "s"), "top": Look(VERMILION, "o", DASHED)}
"""Of squared singular values: all but the largest, and the largest."""

MEASURES = {
    "ratio": "fraction of ‖W‖²",
    "remainder": "change of the others",
    "log_flow_time": "log t",
}
"""What pictures and printed tables call the columns of tables."""
