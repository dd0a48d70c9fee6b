"""Printed names and looks of what the tables contain."""

from runner.results.looks import BLUE, DASHED, DOTTED, INK, VERMILION, Look, Name

MEASURES = {"rank": "r(H)", "excess": "r(H) − 1"}
"""Names of columns."""

NAMES = {
    "normalization": {
        "none": Name("no normalization", Look(INK, "")),
        "pre": Name("pre-norm", Look(BLUE, "", DASHED)),
        "post": Name("post-norm", Look(VERMILION, "", DOTTED)),
    },
}
"""Names and looks of values, by column."""
