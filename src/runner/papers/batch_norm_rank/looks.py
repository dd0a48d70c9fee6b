"""Define how methods look in all figures of paper B.

Blue: with batch norm. Orange to brown: without batch norm, by the length of pre-training. Green:
asymmetric initialization. Grey and hollow: controls.
"""

from runner.papers.batch_norm_rank.names import NAMES
from runner.results import style
from runner.results.style import Look

METHODS = {
    "batch_norm": Look(style.BLUE),
    "batch_norm_no_mean": Look(style.SKY, "^", style.DASHED),
    "batch_norm_asymmetric": Look(style.GREEN, "v", style.DASHED),
    "vanilla": Look(style.ORANGE, "s"),
    "vanilla_100x": Look(style.RUST, "", style.DASHED, 1.6),
    "vanilla_random_pixels": Look(style.INK, "", style.DOTTED, 1.8),
}

PRETRAINED = {5: Look(style.VERMILION, "^"), 75: Look(style.RUST, "D")}
"""By steps of pre-training; other numbers of steps are brown."""

CONTROLS = {
    "scale_matched": Look(style.GREY, "D", style.DASHED, hollow=True),
    "he": Look(style.GREY, "s", style.DASHED, hollow=True),
    "unit_scale": Look(style.GREY, "v", style.DASHED, hollow=True),
    "orthogonalised": Look(style.GREY, "o", hollow=True),
    "orthogonalised_half": Look(style.GREY, "p", hollow=True),
}
"""Controls of ours, without pre-training."""

NORMALIZATIONS = {
    "batch": METHODS["batch_norm"],
    "none": METHODS["vanilla"],
    "batch_no_mean": METHODS["batch_norm_no_mean"],
}


def look(method: str, steps: int = 0) -> Look:
    """Return the look of a method. steps: steps of pre-training, 0 without it."""
    known = METHODS | CONTROLS
    return known.get(method) or PRETRAINED.get(steps) or Look(style.BROWN, "p")


def named(method: str, steps: int = 0) -> str:
    """Return the name of a method in a caption. steps: steps of pre-training, 0 without it."""
    return NAMES.get(method, method).replace("\n", " ") + (f", {steps} steps" if steps else "")


ROOT = Look(style.INK, "", style.DASHED, 1.6)
"""√d, or another power of d with which the paper compares."""
