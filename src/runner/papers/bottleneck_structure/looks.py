"""How ranks and stages look in all figures of paper D."""

from runner.results.style import BLUE, BROWN, GREEN, GREY, ORANGE, PURPLE, VERMILION, Look

RANKS = (
    Look(GREY, "P"),
    Look(VERMILION, "v"),
    Look(BLUE, "o"),
    Look(ORANGE, "s"),
    Look(PURPLE, "D"),
    Look(GREEN, "^"),
    Look(BROWN, "X"),
)
"""By rank 0, 1, 2, ...; the last one for all larger ranks."""

EDGE = "#9a9a9a"
"""Of the grey band below which all values but the first lie."""


def rank_look(rank: int) -> Look:
    """The look of a rank."""
    return RANKS[min(int(rank), len(RANKS) - 1)]
