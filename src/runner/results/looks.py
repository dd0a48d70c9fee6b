"""Names and looks of what tables contain: how a value is printed, and how its line is drawn.

The file `names.py` of a paper, or of a user's package, has one table of names:

    NAMES = {
        "normalization": {
            "none": Name("no normalization", Look(INK, "")),
            "pre": Name("pre-norm", Look(BLUE, "", DASHED)),
        },
        "optimizer": {"sgd": "SGD"},
    }

A name belongs to a column: `sgd` of the column `optimizer` is not `sgd` of the column `method`.
Lists and claims read names, so this module imports no matplotlib.
"""

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from runner.core.choices import REGISTERED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any

SMALL, BASE, LARGE = 10.0, 11.0, 13.0
INK, GREY, SHADE, PALE = "#1a1a1a", "#6b6b6b", "#f0f0f0", "#d4d4d4"
BLUE, NAVY, SKY, GREEN, OLIVE = "#0072B2", "#12305c", "#56B4E9", "#009E73", "#7f8a00"
ORANGE, VERMILION, RUST, BROWN, PURPLE = "#E69F00", "#D55E00", "#9C3A00", "#4F1C00", "#AA3377"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK, OLIVE)
"""The colors of series. The colors in a user's `axes.prop_cycle` replace them in this order."""
DASHED, DOTTED = (0, (4, 1.6)), (0, (1, 1.4))

RECOLORED: ContextVar[Mapping[str, str]] = ContextVar("recolored", default=MappingProxyType({}))
"""The colors that a style file replaces while pictures are drawn: from old to new colors."""


@cache
def rim() -> list[Any]:
    """Return a white rim for a name, so that the name is readable where it crosses a line."""
    from matplotlib.patheffects import withStroke  # late: a table of names draws nothing

    return [withStroke(linewidth=2.5, foreground="white")]


@dataclass(frozen=True)
class Look:
    """The look of a method, the same in all figures of its paper.

    hue: the color. dashes: a line style of matplotlib. width, size: of the line and of its markers,
    in points. hollow: whether markers are hollow, which shows that a method is not in the paper.
    Related methods share a color, and differ in marker and dashes.
    """

    hue: str
    marker: str = "o"
    dashes: Any = "-"
    width: float = 2.4
    hollow: bool = False
    size: float = 7

    def line(self, axes: Axes, x: Any, y: Any, **options: Any) -> None:
        """Draw a line with markers through the points (x, y).

        If only one point is finite, it always has a marker. options: for `Axes.plot`.
        """
        face, edge, rim = ("white", self.color, 1.8) if self.hollow else (self.color, "white", 0.8)
        look = {"linestyle": self.dashes, "linewidth": self.width, "marker": self.marker}
        look |= {"markerfacecolor": face, "markeredgecolor": edge, "markeredgewidth": rim}
        look = {"markersize": self.size} | look | options
        if sum(map(isfinite, y if isinstance(y, Iterable) else [y])) == 1:
            look["marker"] = look["marker"] or "o"
        axes.plot(x, y, color=self.color, **look)

    def each(self, axes: Axes, x: Any, y: Any, alpha: float = 0.45) -> None:
        """Draw each number as a faint dot, for example the single replicates."""
        axes.plot(x, y, ".", color=self.color, alpha=alpha, ms=5.5, mew=0, zorder=1.5)

    def band(self, axes: Axes, x: Any, low: Any, high: Any) -> None:
        """Fill the area between `low` and `high`, such as the smallest and largest replicate."""
        axes.fill_between(x, low, high, color=self.color, alpha=0.2, linewidth=0)

    def bars(self, axes: Axes, x: Any, low: Any, high: Any) -> None:
        """Draw a vertical bar from `low` to `high` at each x, where the x-axis has names."""
        axes.vlines(x, low, high, color=self.color, alpha=0.35, linewidth=4)

    @property
    def color(self) -> str:
        """Return the color in which the method is drawn: `hue`, or a style file's color instead."""
        return RECOLORED.get().get(self.hue, self.hue)

    @property
    def ink(self) -> str:
        """Return the color for text: the method's color, darkened if it is too light to read."""
        rgb = [int(self.color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        lightness = 0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2]
        darker = [part * min(1.0, 0.36 / (lightness + 1e-9)) for part in rgb]
        return "#" + "".join(f"{round(255 * part):02x}" for part in darker)

    def name(self, axes: Axes, x: float, y: float, text: str, **options: Any) -> None:
        """Write a text at the point (x, y) of the data. Outside of the axes nothing is written.

        options: for the text. With the option `transform`, x and y are in other coordinates.
        """
        options = {"color": self.ink, "ha": "center", "va": "center"} | options
        options |= {"path_effects": rim(), "in_layout": False}
        if "transform" in options:
            axes.text(x, y, text, **options)
        else:
            axes.annotate(text, (x, y), annotation_clip=True, **options)

    def note(self, axes: Axes, x: float, y: float, text: str, **options: Any) -> None:
        """Write a small text at (x, y), which are fractions of the axes. options: for the text."""
        layout = {"transform": axes.transAxes, "ha": "left", "size": SMALL, "linespacing": 1.2}
        self.name(axes, x, y, text, **layout | options)

    def name_at(self, axes: Axes, x: Any, y: Any, text: str, at: float, away=(0.0, 9.0),
                **options: Any) -> None:  # fmt: skip
        """Write the name of a line next to the line.

        x, y: the points of the line. at: the value of x at which the name is. away: distance of the
        name from the line in points, to the right and upwards. options: for the text.
        """
        import numpy as np  # late: a table of names needs no arrays

        scaled = axes.transScale.transform(np.column_stack([np.asarray(x, float), y]))
        spot = axes.transScale.transform([(at, scaled[0, 1])])[0, 0]
        height = np.interp(spot, *scaled[np.argsort(scaled[:, 0])].T)
        x0, y0 = axes.transScale.inverted().transform((spot, height))
        side = "center" if not away[0] else "left" if away[0] > 0 else "right"
        layout = {"xytext": away, "textcoords": "offset points", "ha": side}
        self.name(axes, x0, y0, text, **layout | options)


PLAIN, QUIET = Look(INK), Look(GREY, "", DOTTED, 1.2)


def own_look(kind: str, name: str) -> Look:
    """Return the look of a user's method that is registered as `name`. Its markers are hollow.

    kind: the kind of method, as in `core.user_functions.register`. Several methods of a kind have
    different colors.
    """
    return hollow_look([*REGISTERED.get(kind, {}), name].index(name))


def hollow_look(index: int) -> Look:
    """Return one of five looks with hollow markers, for methods that no figure of ours has."""
    colors = (GREEN, VERMILION, BROWN, NAVY, RUST)
    return Look(colors[index % 5], "Pphv<"[index % 5], hollow=True)


@dataclass(frozen=True)
class Name:
    """What a value of a column is called, and how it is drawn.

    - printed: the name in tables, captions and legends. Line breaks are for pictures only.
    - look: color, marker and dashes; None: a picture chooses them.
    - short: the name at a line or a row of a picture; empty: `printed`.
    - rule: the name in rules of claims; empty: `printed`.
    """

    printed: str
    look: Look | None = None
    short: str = ""
    rule: str = ""

    @property
    def drawn(self) -> str:
        """Return the name in pictures, with its line breaks."""
        return self.short or self.printed

    @property
    def in_rule(self) -> str:
        """Return the name in rules of claims, in one line."""
        return (self.rule or self.printed).replace("\n", " ")


def as_name(entry: str | Name) -> Name:
    """Return an entry of a table of names as a `Name`."""
    return Name(entry) if isinstance(entry, str) else entry


Table = Mapping[Any, str | Name]
"""Names by the values of one column."""


def name_of(names: Table, value: Any) -> Name:
    """Return the name of a value in a table of names; a value without one is called as it is."""
    return as_name(names.get(value, str(value)))


def looks_of(names: Table) -> dict[Any, Look]:
    """Return the looks in a table of names, by value, in their order; names without one are left
    out.
    """
    return {v: name.look for v, name in names.items() if isinstance(name, Name) and name.look}
