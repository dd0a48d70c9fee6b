"""How all drawings look: palette, looks, the styles of screen and paper.

A picture is a `matplotlib.figure.Figure` that pyplot knows nothing of: no backend is chosen, no
window opened, and one that a notebook's cell ends with shows itself.

Colours are those of Okabe and Ito (Color Universal Design, 2008; Wong, Nature Methods 8, 441,
2011), safe for colour blindness, and where a paper has more methods than these, of Paul Tol's muted
scheme (SRON/EPS/TN/09-002). What is ordered takes shades of viridis, whose lightness rises all the
way. Because print may be grey, no two series of a panel differ by their colour alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from io import BytesIO
from math import ceil, floor, inf, log10
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, NullLocator

from runner.core.errors import InputError, nearest

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

TICKED = 4
"""A logarithmic axis of more decades has no minor ticks."""

SCREEN: dict[str, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": 150,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.hashsalt": "runner",
    "pdf.fonttype": 42,
}

PAPER: dict[str, Any] = SCREEN | {
    "savefig.dpi": 300,
    "font.family": ["STIXGeneral", "DejaVu Serif"],  # Times; cmr10 has wrong glyphs for | < >
    "mathtext.fontset": "cm",
    "axes.formatter.use_mathtext": True,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
}
"""For print: what LaTeX sets, at the size at which it is printed; no LaTeX is needed."""

STYLES = {"screen": SCREEN, "paper": PAPER}

COLUMN, PAGE = 3.25, 6.75
"""Inches of a column and of a page of two, as of ICML."""

_style: ContextVar[str] = ContextVar("style", default="screen")


@contextmanager
def drawn_in(style: str) -> Iterator[None]:
    """What is drawn and saved within has this style. Raises InputError when there is no such."""
    if style not in STYLES:
        raise InputError(f"style={style} is not known: {nearest(style, STYLES)}")
    token = _style.set(style)
    try:
        with matplotlib.rc_context(STYLES[style]):
            yield
    finally:
        _style.reset(token)


class Picture(Figure):
    """A figure that no backend and no window knows."""

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        file = BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


def picture(size: tuple[float, float], columns: int = 2) -> Picture:
    """An empty picture. size: width and height in inches on the screen.

    On paper it is as wide as a column, with more than one column of panels as a page; its height
    shrinks less than its width, because letters do.
    """
    width, height = size
    if _style.get() == "paper":
        ratio = (COLUMN if columns == 1 else PAGE) / width
        width, height = width * ratio, height * ratio**0.5
    return Picture(figsize=(width, height), layout="constrained")


def subplots(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float], **options: Any
) -> tuple[Picture, Any]:
    """A picture and its axes, as `Figure.subplots` gives them; size: as of `picture`."""
    made = picture(size, columns)
    return made, made.subplots(rows, columns, **options)


def points(number: float) -> float:
    """A line width or the size of a marker in points, given as on the screen."""
    return number * matplotlib.rcParams["lines.linewidth"] / SCREEN["lines.linewidth"]


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


def settle_scales(picture: Figure) -> None:
    """Make linear every logarithmic axis that has nothing positive to show, as of diverged runs.

    Matplotlib fails to draw such an axis. One of more decades than TICKED has no minor ticks: they
    are a grey edge to the eye, and take most of the time of drawing. One of less than a decade has
    plain numbers. One beside which there is a single power of ten has 3 of each decade labelled
    too, and no more: there is no room below.
    """
    for axes in picture.axes:
        for axis, limits, change in (
            (axes.xaxis, axes.get_xlim(), axes.set_xscale),
            (axes.yaxis, axes.get_ylim(), axes.set_yscale),
        ):
            if axis.get_scale() != "log":
                continue
            if not 0 < min(limits) < max(limits) < inf:
                change("linear")
            elif max(limits) > 10**TICKED * min(limits):
                axis.set_minor_locator(NullLocator())
            elif min(limits) >= 1e-3 and max(limits) < min(10 * min(limits), 1e4):
                if isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
                    axis.set_major_formatter(FuncFormatter(_plain))
                if isinstance(axis.get_minor_formatter(), LogFormatterSciNotation):
                    axis.set_minor_formatter(FuncFormatter(_plain))
            elif axis is axes.xaxis and 10 * min(limits) < max(limits) and _powers(*limits) == 1:
                axis.set_minor_formatter(FuncFormatter(_three))


def _powers(*limits: float) -> int:
    """How many powers of ten there are between limits."""
    return floor(log10(max(limits))) - ceil(log10(min(limits))) + 1


def _plain(value: float, position: int | None) -> str:
    """The label of 1, 2, 3, 4 and 6 of a decade, for which there is room; nothing for others."""
    digits = f"{value:.3e}"
    return f"{value:g}" if digits[0] in "12346" and digits[2:5] == "000" else ""


def _three(value: float, position: int | None) -> str:
    """The label of 3 of a decade; nothing for others."""
    power = floor(log10(value))
    return rf"$3\times10^{{{power}}}$" if round(value / 10**power, 6) == 3 else ""
