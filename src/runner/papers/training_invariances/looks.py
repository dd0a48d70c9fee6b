"""Colors and markers of statements, layers and optimizers in all figures of paper C.

A blue line is a quantity that gradient flow conserves by the paper, a vermilion line one that the
flow changes.
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
"""Looks of layers: fully connected, residual blocks with a trained skip, convolutions."""

SQUARES = {"remainder": Look(BLUE, "s"), "top": Look(VERMILION, "o", DASHED)}
"""Looks of squared singular values: all but the largest, and the largest."""
