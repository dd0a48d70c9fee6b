"""Draw what several figures of `rank_chain` share: lines by γ, their names and keys."""

from math import inf

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator

from runner.papers.batch_norm_rank.looks import ROOT
from runner.papers.batch_norm_rank.rank_chain.tables import averages, gamma
from runner.results import style
from runner.results.captions import Caption
from runner.results.curves import curves
from runner.results.evidence import slopes
from runner.results.looks import Name
from runner.results.rows import Tables, nonempty
from runner.results.style import DASHED, Look

NUMBERS = ["law", "skip", "tau", "width", "layers", "regularity", "regularity_se", "frobenius"]
NUMBERS += ["frobenius_se", "soft_rank", "soft_rank_se", "soft_rank_sd"]
NUMBERS += ["rank_bound", "rank_bound_se", "rank_bound_sd"]
"""Columns of averages over depth in the table of a figure."""

SKIPS = {  # lines of 1 and infinity coincide, 0.5 is next to them
    inf: Look(style.BLUE, "", width=3.4),
    1.0: Look(style.NAVY, "o", "", hollow=True, size=9),
    0.5: Look(style.VERMILION, "^", "", size=5),
    0.1: Look(style.SKY, "D", DASHED),
}
"""Looks by gamma, in drawing order from bottom to top."""

OTHER = Look(style.NAVY, "v", style.DOTTED, hollow=True)
"""Look of gammas that the paper does not use."""

TWO = {
    inf: Look(style.BLUE),
    1.0: Look(style.NAVY, hollow=True, size=9),
    0.1: Look(style.SKY, "D", DASHED, hollow=True),
}
"""Looks by gamma in pictures where at most two lines coincide."""

BRANCH = "γ: residual weight"
"""Note in pictures with lines by gamma."""

BY_WIDTH = ("#8cc9ee", style.BLUE, style.NAVY)
"""Colors by width, darker for wider networks."""


def over_layers(text: str) -> Caption:
    """Return a caption function that fills `{layers}` in `text` with "at least 10,000 layers".

    The number is the smallest number of layers in an average, rounded down to its first digit.
    """

    def say(tables: Tables) -> str:
        least = int(averages(tables)["layers"].min())
        round_number = least - least % 10 ** (len(str(least)) - 1)
        return text.format(layers=f"at least {round_number:,} layers")

    return say


def doubling(*axes: Axis) -> None:
    """Set logarithmic scales with a tick at each power of two."""
    for axis in axes:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        axis.set_major_locator(LogLocator(2, numticks=99))
        axis.set_major_formatter("{x:,g}")


def lines_by_gamma(axes: Axes, rows: pd.DataFrame, column: str, looks: dict[float, Look]) -> None:
    """Draw a column against the width, one line for each gamma, with smaller gammas on top."""
    skips = sorted(set(rows["skip"]), reverse=True)
    named = {skip: Name("", looks.get(skip, OTHER)) for skip in skips}  # not in a legend
    curves(axes, rows, "width", column, "skip", named.__getitem__, first=skips)
    doubling(axes.xaxis)


def _within(at: float, widths: np.ndarray | pd.Series) -> float:
    """Return the width at which a line's name is written, within the range of the widths."""
    return float(np.clip(at, widths.min(), max(widths.min(), widths.max() / 1.6)))


def name_power(
    axes: Axes, widths: pd.Series, power: float, text: str, at: float, away: tuple
) -> None:
    """Draw a power of d with its name."""
    d = np.array(sorted(set(widths)), float)
    ROOT.line(axes, d, d**power, zorder=1)
    ROOT.name_at(axes, d, d**power, text, _within(at, d), away)


def name_line(axes: Axes, rows: pd.DataFrame, column: str, look: Look, text: str, at: float,
          away: tuple) -> None:  # fmt: skip
    """Write a name at a line against the width, if the line has points."""
    rows = rows.dropna(subset=column)
    if len(rows):
        look.name_at(axes, rows["width"], rows[column], text, _within(at, rows["width"]), away)


def key_of_gamma(axes: Axes, rows: pd.DataFrame, **place) -> None:
    """Write which line of TWO has which gamma, and the meaning of γ.

    place: options for `Axes.legend`.
    """
    skips = sorted(set(rows["skip"]), reverse=True)
    texts = {skip: gamma(skip) + (" (no skip)" if skip == inf else "") for skip in skips}
    names = {texts[skip]: TWO.get(skip, OTHER) for skip in skips}
    style.key(axes, names, title=BRANCH, **place)


def exponents(rows: pd.DataFrame, by: list[str], x: str, y: str) -> pd.Series:
    """Return for each group the slope of y against x on logarithmic axes.

    by: the columns of a group. Raises NoRows if no group has two points.
    """
    groups = rows.assign(replicate=rows.groupby(by).ngroup())
    return nonempty(slopes(groups, x, y, log=True).dropna(), f"two of {x}")
