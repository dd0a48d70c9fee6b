"""Colors and markers ("looks") of ranks and singular values in all figures of paper D."""

import pandas as pd
from matplotlib.axes import Axes

from runner.results.style import (
    BLUE,
    BROWN,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    QUIET,
    SMALL,
    VERMILION,
    Look,
)

COLORS = (GREY, VERMILION, BLUE, ORANGE, PURPLE, GREEN, BROWN)
RANKS = tuple(map(Look, COLORS, "PvosD^h"))
"""Looks of the ranks 0, 1, 2, ...; the last one is for all larger ranks."""

EDGE = "#9a9a9a"
"""Edge color of the grey band of the remaining singular values."""


def rank_look(rank: int) -> Look:
    """Return the color and marker of a rank."""
    return RANKS[min(int(rank), len(RANKS) - 1)]


def draw_spectra(axes: Axes, spectrum: pd.DataFrame, rank: int, thick: float = 2.2) -> None:
    """Draw the singular values of every weight matrix W_l against the layer l.

    Lines show the `rank` largest values. A grey band reaches up to the next value. spectrum: rows
    of one network, with the columns layer, index (from 1 on) and singular_value. thick: width of
    the lines.
    """
    table = spectrum.pivot(index="layer", columns="index", values="singular_value")
    if rank + 1 in table:
        following = table[rank + 1].fillna(0)
        axes.fill_between(table.index, following, color=PALE, edgecolor=EDGE, linewidth=0.8)
    shown = table[[index for index in table if index <= rank]]
    color = rank_look(rank).color
    axes.plot(table.index, shown, color=color, linewidth=thick)
    alone = shown.where(shown.shift().isna() & shown.shift(-1).isna())
    axes.plot(table.index, alone, ".", color=color, markersize=3 * thick)
    axes.set(xlim=(table.index.min() - 0.6, table.index.max() + 0.6), ylim=(0, None))


WORDS = {1: "one", 2: "two", 3: "three"}


def name_spectra(axes: Axes, spectrum: pd.DataFrame, rank: int) -> None:
    """Write names at the lines and the band of `draw_spectra`.

    The lines are named "<rank> near 1" if the `rank` largest singular values are between 1/2 and
    3/2 in all layers of the middle half. The band is named "all others". The words "≈ 0 inside" are
    added if the lines are named and the next value is below 0.1 in most of these layers.
    spectrum, rank: as for `draw_spectra`.
    """
    L, values = spectrum["layer"].max(), spectrum.set_index("layer")
    middle = values[(values.index >= L / 4) & (values.index <= 3 * L / 4)]
    first = middle[middle["index"] <= rank]["singular_value"]
    following = middle[middle["index"] == rank + 1]["singular_value"]
    center, offset = (1 + L) / 2, {"textcoords": "offset points"}
    is_near = len(first) > 0 and ((first - 1).abs() < 0.5).all()
    if is_near:
        words, above = f"{WORDS.get(rank, rank)} near 1", {"xytext": (0, 11), "weight": "bold"}
        rank_look(rank).name(axes, center, first.max(), words, **above, **offset)
    if len(following):
        is_zero = is_near and (following < 0.1).mean() > 0.5
        words = "all others:\n≈ 0 inside" if is_zero else "all others"
        offset |= {"xytext": (0, 5), "va": "bottom", "linespacing": 1.1}
        QUIET.name(axes, center, 0, words, size=SMALL, **offset)
