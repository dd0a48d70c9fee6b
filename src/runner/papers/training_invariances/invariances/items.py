"""The items of Theorem 1: between which layers all of D is invariant."""

ITEMS = {
    1: "two dense layers",
    2: "two convolutions",
    3: "inside a residual block",
    4: "two free blocks",
    5: "convolution, dense layer",
    6: "convolution, free block",
    7: "free block, dense layer",
}
"""Their titles by number; the third is about the inside of a residual block, of any skip."""

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
"""The item about two layers, by the kinds of that before and that behind."""
