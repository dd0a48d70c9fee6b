"""Looks and names of networks in several figures of paper B."""

from runner.papers.batch_norm_rank.names import NAMES
from runner.results import style
from runner.results.looks import Look, Name, looks_of, name_of, own_look

METHODS = looks_of(NAMES["method"])
NORMALIZATIONS = looks_of(NAMES["normalization"])

PRETRAINED = {5: Look(style.VERMILION, "^"), 75: Look(style.RUST, "D")}
"""Looks of pre-trained networks by their number of pre-training steps. All other numbers are brown.
"""


def look_of(normalization: str) -> Look:
    """Return color, marker and dashes of a normalization.

    normalization: a key of NORMALIZATIONS or a user's function, which gets hollow markers.
    """
    return NORMALIZATIONS.get(normalization) or own_look("normalization", normalization)


def normalization(kind: str) -> Name:
    """Return the printed name and the look of a normalization, for `curves`."""
    return Name(name_of(NAMES["normalization"], kind).drawn, look_of(kind))


def look(method: str, steps: int = 0) -> Look:
    """Return color, marker and dashes of a method.

    steps: number of pre-training steps, 0 without pre-training.
    """
    return METHODS.get(method) or PRETRAINED.get(steps) or Look(style.BROWN, "p")


def named(method: str, steps: int = 0) -> str:
    """Return a method's name in captions.

    steps: number of pre-training steps, which is added to the name; 0: without pre-training.
    """
    name = name_of(NAMES["method"], method).printed.replace("\n", " ")
    return name + (f", {steps} steps" if steps else "")


ROOT = Look(style.INK, "", style.DASHED, 1.6)
"""Line of √d, or of another power of d to which the paper compares."""
