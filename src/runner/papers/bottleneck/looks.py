"""How ranks, orders and stages look in all figures of paper D."""

from runner.results.style_before import (
    BLACK,
    BLUE,
    DASHDOT,
    DASHED,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SOLID,
    VERMILION,
    WINE,
    Look,
)

RANKS = (
    Look(GREY, "P"),
    Look(VERMILION, "v"),
    Look(BLUE, "o"),
    Look(GREEN, "s"),
    Look(PURPLE, "D"),
    Look(ORANGE, "^"),
    Look(WINE, "*"),
)
"""By rank 0, 1, 2, ...; the last one for all larger ranks."""


def rank_look(rank: int) -> Look:
    """The look of a rank."""
    return RANKS[min(rank, len(RANKS) - 1)]


ORDERS = (Look(BLUE, "o", SOLID), Look(ORANGE, "s", DASHED), Look(GREEN, "^", DASHDOT))
"""Of the expansion in 1/L."""

FIT = Look(BLUE, "o", SOLID, "networks that fit")
MISFIT = Look(GREY, "x", SOLID, "networks that do not fit")
BOUND = Look(BLACK, "none", DASHED)
"""A bound or a law of the paper."""
