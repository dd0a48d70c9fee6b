"""How data, quantities and methods look in all figures of paper C."""

from runner.results.style_before import (
    BLACK,
    BLUE,
    DASHDOT,
    DASHED,
    DOTTED,
    GREEN,
    GREY,
    LONG,
    OLIVE,
    ORANGE,
    PURPLE,
    SHORT,
    SKY,
    SOLID,
    VERMILION,
    WINE,
    Look,
)

DATA = {
    "gaussian": Look(BLUE, "o", SOLID, "Gaussian"),
    "digits": Look(ORANGE, "s", DASHED, "digits"),
}

QUANTITIES = {
    "full D, ReLU neurons": Look(VERMILION, "o", SOLID),
    "D of two neurons always on": Look(PURPLE, "v", DASHDOT),
    "D of two with one mixed pattern": Look(OLIVE, "X", SHORT),
    "diagonal of D, ReLU neurons": Look(BLUE, "s", DASHED),
    "full D, linear neurons": Look(GREEN, "D", SOLID),
    "difference of layers' norms": Look(GREY, "^", DOTTED),
}
"""What drifts; vermilion is not invariant, everything else is."""

INVARIANT, NOT_INVARIANT = Look(BLUE, "o"), Look(VERMILION, "s", DASHED)

METHODS = {
    "gradient descent": Look(BLACK, "o"),
    "SGD": Look(SKY, "s", DASHED),
    "momentum": Look(GREEN, "^", DASHDOT),
    "Adam": Look(VERMILION, "D"),
    "AdamW": Look(PURPLE, "v", SHORT),
}

VARIANTS = {
    "two classes": METHODS["gradient descent"],
    "SGD": METHODS["SGD"],
    "exponential loss": Look(OLIVE, "<", DASHDOT),
    "squared loss": Look(WINE, ">", SHORT),
    "convolutions": Look(ORANGE, "P", LONG),
    "ten classes": Look(BLUE, "h", DOTTED),
}
"""Of networks and losses, by what they differ in from gradient descent on two classes."""

CLASSES = {True: Look(BLACK, "o", SOLID), False: VARIANTS["ten classes"]}
"""By whether there are two classes."""

SQUARES = {"remainder": Look(BLUE, "s", DASHED), "top": Look(VERMILION, "o")}
"""Of singular values: all but the largest, and the largest."""

DECAYS = (Look(BLACK, "o"), Look(VERMILION, "s", DASHED))
"""Without weight decay, and with."""
