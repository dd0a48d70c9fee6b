"""How methods look in all figures of paper B.

Blue is with batch norm; warm is without, from orange to brown by the length of pre-training; green
starts asymmetrically; grey and hollow are controls.
"""

from runner.results.style import (
    BLUE,
    BROWN,
    DASHED,
    DOTTED,
    GREEN,
    GREY,
    INK,
    ORANGE,
    RUST,
    SKY,
    VERMILION,
    Look,
)

METHODS = {
    "batch_norm": Look(BLUE),
    "batch_norm_no_mean": Look(SKY, "^", DASHED),
    "batch_norm_asymmetric": Look(GREEN, "v", DASHED),
    "vanilla": Look(ORANGE, "s"),
    "vanilla_100x": Look(RUST, "", DASHED, 1.6),
    "vanilla_random_pixels": Look(INK, "", DOTTED, 1.8),
}

PRETRAINED = {5: Look(VERMILION, "^"), 75: Look(RUST, "D")}
"""By M; others are brown."""

CONTROLS = {
    "scale_matched": Look(GREY, "D", DASHED, hollow=True),
    "he": Look(GREY, "s", DASHED, hollow=True),
    "unit_scale": Look(GREY, "v", DASHED, hollow=True),
    "orthogonalised": Look(GREY, "o", hollow=True),
    "orthogonalised_half": Look(GREY, "p", hollow=True),
}
"""Ours: no ascent."""

NORMALIZATIONS = {
    "batch": METHODS["batch_norm"],
    "none": METHODS["vanilla"],
    "batch_no_mean": METHODS["batch_norm_no_mean"],
}


def look(method: str, steps: int = 0) -> Look:
    """The look of a method. steps: M, of what is pre-trained."""
    known = METHODS | CONTROLS
    return known.get(method) or PRETRAINED.get(steps) or Look(BROWN, "p")


ROOT = Look(INK, "", DASHED, 1.6)
"""The root of d, or another power that the paper compares with."""
