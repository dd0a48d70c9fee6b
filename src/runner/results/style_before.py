"""What drawings use that are not in the grammar of `style` yet.

A picture is a `matplotlib.figure.Figure` that pyplot knows nothing of: no backend is chosen, no
window opened, and one that a notebook's cell ends with shows itself.

Colours are those of Okabe and Ito (Color Universal Design, 2008; Wong, Nature Methods 8, 441,
2011), safe for colour blindness, and where a paper has more methods than these, of Paul Tol's muted
scheme (SRON/EPS/TN/09-002). What is ordered takes shades of viridis, whose lightness rises all the
way. Because print may be grey, no two series of a panel differ by their colour alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from runner.results.style import HEAD, Picture

BLACK, GREY = "#000000", "#767676"
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
"""Of Okabe and Ito; yellow for surfaces alone: lines of it are lost on white."""

INDIGO, TEAL, OLIVE, WINE = "#332288", "#44AA99", "#999933", "#882255"
"""Of Tol's muted scheme."""

Dashes = str | tuple[int, tuple[float, ...]]
"""As matplotlib takes them, in line widths."""

SOLID: Dashes = "-"
DASHED: Dashes = (0, (4, 1.5))
DOTTED: Dashes = (0, (1, 1.3))
DASHDOT: Dashes = (0, (5, 1.5, 1, 1.5))
DASHDOTS: Dashes = (0, (4, 1.3, 1, 1.3, 1, 1.3))
SHORT: Dashes = (0, (2, 1))
LONG: Dashes = (0, (8, 2))


def picture(size: tuple[float, float], columns: int = 2) -> Picture:
    """An empty picture. size: width and height in inches."""
    width, height = size
    made = Picture(figsize=(width, height + HEAD), layout="constrained")
    made.get_layout_engine().set(rect=(0, 0, 1, height / (height + HEAD)))
    return made


def subplots(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float], **options: Any
) -> tuple[Picture, Any]:
    """A picture and its axes, as `Figure.subplots` gives them; size: as of `picture`."""
    made = picture(size, columns)
    return made, made.subplots(rows, columns, **options)


def points(number: float) -> float:
    """A line width or the size of a marker in points."""
    return number


@dataclass(frozen=True)
class Look:
    """How a method, or whatever a series stands for, looks in all figures of a paper."""

    color: str
    marker: str = "o"
    dashes: Dashes = SOLID
    label: str = ""

    @property
    def line(self) -> dict[str, Any]:
        """Options of a line without markers."""
        return {"color": self.color, "linestyle": self.dashes}

    @property
    def dots(self) -> dict[str, Any]:
        """Options of markers without a line."""
        return {"color": self.color, "marker": self.marker, "linestyle": "none"}

    @property
    def both(self) -> dict[str, Any]:
        """Options of a line with markers."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.dashes}


HOLLOW = {"markerfacecolor": "white"}
"""Options of markers that let what lies below them show."""


def guide(**options: Any) -> dict[str, Any]:
    """Options of a line that nothing was measured for: a bound, a guess, a slope."""
    return {"color": GREY, "linestyle": DOTTED, "linewidth": points(1.2)} | options


def shades(values: Iterable[Any], scale: str = "viridis", last: float = 0.82) -> dict[Any, str]:
    """A colour for each of some ordered values, from dark to light.

    last: how far up the scale, so that the lightest can be seen on white.
    """
    values = list(values)
    places = np.linspace(0, last, len(values))
    return dict(zip(values, map(to_hex, matplotlib.colormaps[scale](places)), strict=True))


def ordered(values: Iterable[Any], scale: str = "viridis") -> dict[Any, Look]:
    """A look for each of some ordered values: shades, markers and dashes."""
    markers, dashes = "os^DvPX*", (SOLID, DASHED, DASHDOT, DOTTED, LONG, DASHDOTS)
    return {
        value: Look(color, markers[index % len(markers)], dashes[index % len(dashes)])
        for index, (value, color) in enumerate(shades(values, scale).items())
    }


def sparse(count: int, place: int, marks: int = 6) -> tuple[int, int]:
    """`markevery` of a line of so many points that has a few markers.

    place: the line's number, so that the markers of neighbours do not lie on each other.
    """
    step = max(1, count // marks)
    return (place * max(1, step // 3)) % step, step


def band(axes: Axes, x: pd.Series | pd.Index, low: pd.Series, high: pd.Series, color: Any) -> None:
    """Fill what lies between two lines."""
    axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)


def beside(axes: Axes, y: float, text: str, color: str = GREY, side: str = "center") -> None:
    """Write at the right of the axes, at the height of `y`, outside of what is drawn.

    side: which of the text's is at this height, `center`, `top` or `bottom`; near the ends of the
    axis it is the one that keeps the text beside it. Call it when the limits of the axis are set.
    """
    height = _height(axes, y)
    if 0 <= height <= 1:
        side = "bottom" if height < 0.05 else "top" if height > 0.9 else side
        place = {"xycoords": "axes fraction", "textcoords": "offset points"}
        axes.annotate(text, (1, height), (3, 0), color=color, fontsize="small", va=side, **place)


def _height(axes: Axes, y: float) -> float:
    """Which share of the axes is below `y`; nan where it has no place on them."""
    if not np.isfinite(y) or (axes.get_yscale() == "log" and y <= 0):
        return np.nan
    shown = axes.transData.transform((axes.get_xlim()[1], y))
    return float(axes.transAxes.inverted().transform(shown)[1])


def name_hidden(
    axes: Axes, ends: Mapping[str, float], within: float = 0.012, near: float = 0.06
) -> None:
    """Name, at the right of the axes, the lines that end on each other.

    The names leave free the side on which another line ends. ends: the last value of each line by
    its name; within, near: which shares of the axis are no distance, and that of a line of text.
    Call it when the limits of the axis are set.
    """
    heights = {name: _height(axes, y) for name, y in ends.items()}
    heights = {name: height for name, height in heights.items() if 0 <= height <= 1}
    groups: list[list[str]] = []
    for name in sorted(heights, key=heights.__getitem__):
        if groups and heights[name] - heights[groups[-1][-1]] <= within:
            groups[-1].append(name)
        else:
            groups.append([name])
    for group in groups:
        if len(group) > 1:
            others = [height for name, height in heights.items() if name not in group]
            above = any(0 < height - heights[group[-1]] < near for height in others)
            side = "top" if above else "center"
            beside(axes, ends[group[0]], "\n".join(reversed(group)), color=BLACK, side=side)
