"""The items of Theorem 1 of paper C: pairs of layers for which all of D is invariant."""

ITEMS = {
    1: "two dense layers",
    2: "two convolutions",
    3: "inside a residual block",
    4: "two free blocks",
    5: "convolution, dense layer",
    6: "convolution, free block",
    7: "free block, dense layer",
}
"""Titles of the items by number; item 3 is about the inside of residual blocks with any skip."""

WITHIN = 3

BETWEEN = {
    ("dense", "dense"): 1,
    ("conv", "conv"): 2,
    ("residual_free", "residual_free"): 4,
    ("conv", "dense"): 5,
    ("conv", "residual_free"): 6,
    ("residual_free", "dense"): 7,
    ("dense", "residual_free"): 7,
}
"""Item of Theorem 1 about two layers, by the kinds of the first and the second layer."""
