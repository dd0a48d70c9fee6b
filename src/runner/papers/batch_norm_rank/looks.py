"""Define how methods look in all figures of paper B, and what pictures and captions call them.

Blue: with batch norm. Orange to brown: without batch norm, by the length of pre-training. Green:
asymmetric initialization. Grey and hollow: controls.
"""

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

NAMES = {
    "batch_norm": "batch norm",
    "batch_norm_no_mean": "without mean\nsubtraction",
    "batch_norm_asymmetric": "batch norm,\nasymmetric",
    "vanilla": "plain",
    "vanilla_100x": "plain, 100 ×\nlearning rate",
    "vanilla_random_pixels": "plain, random\npixels",
    "pretrained": "pre-trained",
    "scale_matched": "random weights\nof the same size",
    "batch": "batch norm",
    "batch_no_mean": "without mean\nsubtraction",
    "none": "plain",
}
"""What pictures call a method or a normalization; in captions without the line break."""

MEASURES = {
    "matrix_rank": "rank",
    "rank": "rank",
    "soft_rank": "soft rank",
    "rank_bound": "r",
    "mean_rank_bound": "mean r",
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "test_loss": "test loss",
    "test_accuracy": "test accuracy",
    "gradient_alignment": "alignment of gradients",
}
"""What pictures call the columns of tables."""

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
