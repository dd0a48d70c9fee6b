"""Colors, markers and dashes ("looks") of methods in all figures of paper B."""

from runner.papers.batch_norm_rank.names import NAMES
from runner.results import style
from runner.results.style import Look, own_look

METHODS = {
    "batch_norm": Look(style.BLUE),
    "batch_norm_no_mean": Look(style.SKY, "^", style.DASHED),
    "batch_norm_asymmetric": Look(style.GREEN, "v", style.DASHED),
    "vanilla": Look(style.ORANGE, "s"),
    "vanilla_100x": Look(style.RUST, "", style.DASHED, 1.6),
    "vanilla_random_pixels": Look(style.INK, "", style.DOTTED, 1.8),
}

PRETRAINED = {5: Look(style.VERMILION, "^"), 75: Look(style.RUST, "D")}
"""Looks of pre-trained networks by their number of pre-training steps. All other numbers are brown.
"""

CONTROLS = {
    "scale_matched": Look(style.GREY, "D", style.DASHED, hollow=True),
    "he": Look(style.GREY, "s", style.DASHED, hollow=True),
    "unit_scale": Look(style.GREY, "v", style.DASHED, hollow=True),
    "orthogonalised": Look(style.GREY, "o", hollow=True),
    "orthogonalised_half": Look(style.GREY, "p", hollow=True),
}
"""Looks of additional control networks, which are not pre-trained."""

NORMALIZATIONS = {
    "batch": METHODS["batch_norm"],
    "none": METHODS["vanilla"],
    "batch_no_mean": METHODS["batch_norm_no_mean"],
    "layer": Look(style.PURPLE, "D", style.DASHED),
    "rms": Look(style.OLIVE, "v", style.DOTTED),
}


def look_of(normalization: str) -> Look:
    """Return color, marker and dashes of a normalization.

    normalization: a key of NORMALIZATIONS or a user's function, which gets hollow markers.
    """
    return NORMALIZATIONS.get(normalization) or own_look("normalization", normalization)


def normalization(kind: str) -> tuple[str, Look]:
    """Return the printed name and the look of a normalization, for `curves`."""
    return NAMES.get(kind, kind), look_of(kind)


def look(method: str, steps: int = 0) -> Look:
    """Return color, marker and dashes of a method.

    steps: number of pre-training steps, 0 without pre-training.
    """
    looks = METHODS | CONTROLS
    return looks.get(method) or PRETRAINED.get(steps) or Look(style.BROWN, "p")


def named(method: str, steps: int = 0) -> str:
    """Return a method's name in captions.

    steps: number of pre-training steps, which is added to the name; 0: without pre-training.
    """
    return NAMES.get(method, method).replace("\n", " ") + (f", {steps} steps" if steps else "")


ROOT = Look(style.INK, "", style.DASHED, 1.6)
"""Line of √d, or of another power of d to which the paper compares."""
