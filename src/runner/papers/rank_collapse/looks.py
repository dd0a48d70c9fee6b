"""How methods, gammas and laws look in all figures of paper B."""

from collections.abc import Iterable, Mapping
from math import inf, isinf, log

from runner.results.style_before import (
    BLACK,
    BLUE,
    DASHDOT,
    DASHDOTS,
    DASHED,
    DOTTED,
    GREEN,
    GREY,
    INDIGO,
    LONG,
    OLIVE,
    ORANGE,
    PURPLE,
    SHORT,
    SKY,
    SOLID,
    TEAL,
    VERMILION,
    WINE,
    Look,
)

METHODS = {
    "vanilla": Look(ORANGE, "s", SOLID, "vanilla"),
    "vanilla_100x": Look(WINE, "X", DASHDOTS, "100×"),
    "vanilla_random_pixels": Look(BLACK, "1", DOTTED, "pixels"),
    "he": Look(TEAL, "d", LONG, "He"),
    "unit_scale": Look(GREY, "P", SHORT, "unit scale"),
    "pretrained_end_to_end": Look(PURPLE, "*", SOLID, "end to end"),
    "orthogonal": Look(INDIGO, ">", DASHDOT, "orthogonal"),
    "whitened": Look(OLIVE, "p", DASHDOTS, "whitened"),
    "batch_norm": Look(BLUE, "o", SOLID, "BN"),
    "batch_norm_no_mean": Look(SKY, "^", DASHED, "no mean"),
    "batch_norm_asymmetric": Look(GREEN, "v", DASHDOT, "asymm."),
}
"""Blue and orange are the paper's colours of networks with batch norm and without; the labels are
short, for the margin."""

NORMALIZATIONS = {
    "batch": METHODS["batch_norm"],
    "none": METHODS["vanilla"],
    "batch_no_mean": METHODS["batch_norm_no_mean"],
}

PRETRAINED = (
    Look("#F7CDB3", "4"),
    Look("#F2A57A", "<"),
    Look(VERMILION, "D"),
    Look("#7A3600", "X"),
    Look("#3D1B00", "H"),
)
"""By the length of pre-training, a factor of four from one to the next."""


def lengths(steps: Iterable[int]) -> dict[int, Look]:
    """The looks of pre-training for M steps: by M itself, so that all figures agree.

    Of two that are too close the longer takes the next look.
    """
    looks, last = {}, -1
    for M in sorted(set(steps)):
        last = max(round(log(max(M, 1) / 5, 4)), last + 1)
        looks[M] = PRETRAINED[min(last, len(PRETRAINED) - 1)]
    return looks


def method(name: str, steps: int, by_length: Mapping[int, Look]) -> Look:
    """The look of a method. steps: M, of what is pre-trained: the longer, the darker."""
    if name in METHODS:
        return METHODS[name]
    look = by_length[steps]
    return look if name == "pretrained" else Look(look.color, "+", DASHED)


SKIPS = {
    0.1: Look(BLUE, "o"),
    0.5: Look(GREEN, "s", DASHED),
    1.0: Look(ORANGE, "^", DASHDOT),
    inf: Look(VERMILION, "D", SHORT),
}
"""By gamma."""

SIZES = {0.1: 8.0, 0.5: 6.5, 1.0: 5.0, inf: 3.0}
"""Of the markers by gamma: one within the other, because the curves nearly coincide."""


def skip(gamma: float) -> Look:
    """The look of a gamma."""
    return SKIPS.get(gamma, Look(PURPLE, "v", LONG))


def is_filled(gamma: float) -> bool:
    """Whether its markers are: those of the smallest are."""
    return isinf(gamma)


LAWS = {
    "gaussian": Look(VERMILION, "D"),
    "uniform": Look(BLUE, "s", DASHED),
    "rademacher": Look(GREEN, "^", DASHDOT),
}
"""By the law of the weights."""
