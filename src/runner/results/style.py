"""Draw the parts of all figures: sheet, header, panels, lines and their names, rails, guides.

A sheet is 8.4 inches wide. At 200 dpi this is 1,680 pixels, two for each of the 840 pixels of a
README. A point is 1.4 pixels there and 0.7 pixels at half width, so no text is smaller than 10
points. Lengths are in inches.

A picture is a `matplotlib.figure.Figure` that is made without pyplot. Drawing therefore chooses no
backend and opens no window. A notebook shows a picture that ends a cell. The colors are from Okabe
and Ito (Color Universal Design, 2008), safe for color blindness. Because print may be grey, two
series of a panel differ in two of lightness, width, dashes, marker and place.

Rules for all pictures. A picture has one message, and a panel that its headline does not speak of
goes. A headline is one sentence of at most 20 words, and each of its numbers is written or can be
read at its mark. No mark refers to text outside the picture. The title of a panel names what the
y-axis shows and then, after a comma, the condition; vertical labels are not used. A line has its
name at its end, or a sample of its stroke in a key; at most six lines of a panel have names. A
symbol has its word where it is first drawn. No text lies on another text.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib import ft2font
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import NullLocator
from matplotlib.transforms import Bbox

from runner.results.formats import FORMAT, WIDTH, settings_of
from runner.results.looks import (  # colors and looks are offered here, too
    BASE,
    BLUE,
    BROWN,
    DASHED,
    DOTTED,
    GREEN,
    GREY,
    INK,
    LARGE,
    NAVY,
    OLIVE,
    ORANGE,
    PALE,
    PALETTE,
    PLAIN,
    PURPLE,
    QUIET,
    RUST,
    SHADE,
    SKY,
    SMALL,
    VERMILION,
    Look,
    hollow_look,
    own_look,
)

HEAD = 1.1
"""Largest height of a header."""


class Picture(Figure):
    """A matplotlib figure without a window. It has a body, and may have a header above the body.

    width, height: size of the body in inches. share: the factor by which it will shrink in print.
    """

    head = 0.0
    """The height of the header in inches."""

    def __init__(self, width: float, height: float, share: float = 1.0) -> None:
        self.form, self.share = FORMAT.get(), share
        self.room = HEAD if self.form.has_header else 0.0
        """Inches above the body, the room for a header."""
        self.ends: list[tuple[Axes, list[tuple[float, Text]]]] = []
        """The names that `name_ends` wrote, with their axes."""
        self.follow: Callable[[], object] = lambda: None
        """Adapts the finished picture to axes that were changed since, see `finishing.settle`."""
        super().__init__(figsize=(width, height + self.room))

    @property
    def body(self) -> tuple[float, float]:
        """Return width and height of the body in inches."""
        width, height = self.get_size_inches()
        return float(width), float(height) - self.room

    @property
    def points(self) -> float:
        """Return the font size of names and labels in points."""
        return BASE * self.share

    def draw(self, renderer: Any) -> None:
        """Draw the picture, adapted to axes that were changed after it was finished."""
        self.follow()
        super().draw(renderer)

    def savefig(self, fname: Any, *, header: bool = True, **options: Any) -> None:
        """Save the picture, without its header if `header` is false.

        fname, options: as in `matplotlib.figure.Figure.savefig`.
        """
        width, height = self.get_size_inches()
        top = height - self.room + self.head * header
        with settings_of(self.form):
            super().savefig(fname, **{"bbox_inches": Bbox([[0, 0], [width, top]])} | options)

    def _repr_png_(self) -> bytes:
        """Return the PNG that a notebook shows."""
        return as_bytes(self)

    def add_header(self, what: str, finding: str) -> None:
        """Write a header of two lines above the body. A line that is too long is broken into two.

        what: the first line: paper, figure, data, procedure and marks. finding: a bold sentence.
        """
        total, left = self.get_figheight(), 0.1 / self.get_figwidth()
        lines, first = in_two(finding), in_two(what, SMALL, "normal")
        heights = np.cumsum([0.14, 0.24 * len(lines) + 0.03])
        y = (total - self.room + heights) / total
        bold: Any = {"size": LARGE, "weight": "bold", "linespacing": 1.25}
        self.text(left, y[0], "\n".join(lines), **bold)
        self.text(left, y[1], "\n".join(first), color=GREY, size=SMALL)
        self.head = heights[1] + 0.06 + 0.18 * len(first)


DATED = {"png": "Software", "pdf": "CreationDate", "svg": "Date"}
"""The metadata that would differ between equal pictures, by format. Files are written without
it."""


def as_bytes(picture: Figure, end: str = "png", **options: Any) -> bytes:
    """Return the content of a file with the picture.

    end: the format `png`, `pdf` or `svg`. options: further options of `savefig`.
    """
    content = BytesIO()
    picture.savefig(content, format=end, metadata={DATED[end]: None}, **options)
    return content.getvalue()


def in_two(text: str, size: float = LARGE, weight: str = "bold") -> list[str]:
    """Return a sentence as a list: one line or, if it is too long, two lines of similar length.

    A break at a dot between two parts of a header, or after a comma or semicolon is preferred. No
    break separates a number from its %, or the
    two sides of an equation. size: the font size in points. weight: of the font.
    """
    longest = WIDTH - 0.25
    font = get_font(findfont(FontProperties(family="DejaVu Sans", weight=weight)))
    font.set_size(size, 72)
    # matplotlib before 3.10 has another name for the flag
    flags = vars(getattr(ft2font, "LoadFlags", ft2font))
    unhinted = flags["NO_HINTING" if "NO_HINTING" in flags else "LOAD_NO_HINTING"]

    def inches(part: str) -> float:
        """Return the width of a text in inches."""
        font.set_text(part, flags=unhinted)
        return font.get_width_height()[0] / 64 / 72

    for whole in (text, text := " ".join(text.split())):
        if inches(whole) <= longest:
            return [whole]

    def cost(two: tuple[str, str]) -> tuple[bool, float]:
        """Return whether one of two lines is too long, and how bad their break is."""
        width = max(map(inches, two))
        is_between = two[1].startswith("· ")
        return width > longest, width - (two[0][-1] in ",;:") - 3 * is_between

    places = re.finditer(r"(?<![=·]) (?![=%])", text)
    breaks = [(text[: at.start()], text[at.end() :]) for at in places]
    return [part.removeprefix("· ") for part in min(breaks, key=cost)]


def canvas(height: float) -> Picture:
    """Return an empty picture. Axes that are added to it are laid out automatically.

    height: the height of the body in inches.
    """
    width, given, share = _inches(least=NARROWEST)
    height = given or height
    picture = Picture(width, height, share)
    room = (0, 0, 1, (height - 0.1) / picture.get_figheight())
    layout = ConstrainedLayoutEngine(rect=room, w_pad=0.07, h_pad=0.06, wspace=0.04)
    picture.set_layout_engine(layout)
    return picture


STACKED, NARROWEST = 5.9, 7.5
"""Widths in inches. In a picture narrower than STACKED, panels are below each other. In one
narrower than NARROWEST, texts are smaller if panels cannot be below each other."""
TALLEST, LOWEST, FLATTEST = 8.5, 1.3, 0.75
"""Three limits: the largest height of a printed picture in inches; the smallest height of a panel
in a stack in inches; the smallest fraction of a panel's usual height."""


def _inches(least: float = 0.0) -> tuple[float, float | None, float]:
    """Return width and height of a body before it shrinks in print, and the factor of shrinking.

    If the height is None, the drawing chooses it. least: the smallest width in inches at which
    texts have their usual size; in a narrower picture they are smaller.
    """
    form = FORMAT.get()
    width, height = form.inches
    share = min(form.share, width / least) if least else form.share
    return width / share, height and height / share, share


def sheet(rows=1, cols=2, *, height=4.4, left=0.75, right=0.25, gap=0.3, between=1.05, top=0.45,
          bottom=0.62, ratios=(), heights=(), names: Mapping[int, float] = MappingProxyType({}),
          beside=False, **options: Any) -> tuple[Picture, np.ndarray]:  # fmt: skip
    """Return a picture, and its axes as an array (rows, cols).

    - height: the height of the body;
    - left, right: room at the sides, for labels and names;
    - gap: room between columns;
    - top, between, bottom: room above the first row, between rows and below the last one;
    - ratios, heights: relative widths of columns and heights of rows;
    - names: room for names of lines to the right of some columns, by the column's number;
    - beside: whether panels stay beside each other in a narrow format;
    - options: for `Figure.subplots`.

    All lengths are in inches. In a narrow format the panels are below each other, if there are not
    too many.
    """
    width, given, share = _inches()
    shape = rows, cols
    if width < STACKED and beside:
        width, given, share = _inches(least=NARROWEST)
    elif width < STACKED and cols > 1:
        usual = (WIDTH - left - right - gap * (cols - 1)) / cols
        high = (height - top - bottom - between * (rows - 1)) / rows
        high *= np.clip((width - left - right) / usual, FLATTEST, 1)
        n = rows * cols
        rest = top + bottom + between * (n - 1)
        high = min(high, ((given or TALLEST / share) - rest) / n)
        if high >= LOWEST:
            rows, cols, height, ratios = n, 1, high * n + rest, ()
            heights = np.repeat(heights or [1] * shape[0], shape[1]).tolist()
        else:
            width, given, share = _inches(least=NARROWEST)
    height = given or height
    if names and cols == 1:  # the panels are below each other
        right = max(right, *names.values())
    wide = (width - left - right - gap * (cols - 1)) / cols
    high = (height - top - bottom - between * (rows - 1)) / rows
    picture = Picture(width, height, share)
    total = picture.get_figheight()
    grid: dict[str, Any] = {"left": left / width, "right": 1 - right / width, "wspace": gap / wide}
    grid |= {"top": (height - top) / total, "bottom": bottom / total, "hspace": between / high}
    grid |= {"width_ratios": ratios or [1] * cols, "height_ratios": heights or [1] * rows}
    axes = picture.subplots(rows, cols, squeeze=False, gridspec_kw=grid, **options)
    if names and cols > 1:
        rooms, shares = [names.get(number, 0.0) for number in range(cols)], ratios or [1] * cols
        unit, x = (cols * wide - sum(rooms)) / sum(shares), left
        for column, share, room in zip(axes.T, shares, rooms, strict=True):
            for each in column:
                box = each.get_position()
                each.set_position((x / width, box.y0, share * unit / width, box.height))
            x += share * unit + room + gap
    return picture, axes.reshape(shape)


def is_at_left(axes: Axes) -> bool:
    """Return whether a panel is the leftmost one of its row."""
    spec = axes.get_subplotspec()
    return spec is not None and spec.is_first_col()


def panel(axes: Axes, letter: str, title: str, x: str = "") -> None:
    """Label a panel: a bold letter and a title above it, and a label below its x-axis.

    title: what the y-axis shows, then the condition. x: the label of the x-axis.
    """
    layout: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
    layout |= {"annotation_clip": False, "in_layout": False}
    axes.annotate(letter, (0, 1), (0, 9), fontsize=LARGE, fontweight="bold", **layout)
    axes.annotate(title, (0, 1), (15, 9.5), **layout)
    axes.set_xlabel(x)


def guide(axes: Axes, x: Any, y: Any) -> None:
    """Draw a thin dotted line below all others: a bound or a theory, not measurements."""
    QUIET.line(axes, x, y, zorder=1, scalex=False, scaley=False)


def level(axes: Axes, y: float, text: str = "", at: float = 0.02, above: bool = True) -> None:
    """Draw a thin dotted horizontal line at height y, with its name.

    text: the name. at: where the name begins, as a fraction of the axes. above: whether the name is
    above the line.
    """
    axes.axhline(y, color=GREY, linestyle=DOTTED, linewidth=QUIET.width, zorder=1)
    layout: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    layout |= {"xytext": (0, 4 if above else -4), "va": "bottom" if above else "top"}
    QUIET.name(axes, at, y, text, ha="left", **layout)


def shades(values: Iterable[Any], *colors: str) -> dict[Any, str]:
    """Return a color for each value, in order along a gradient of colors.

    colors: the colors of the gradient, beginning with the color of the first value.
    """
    values = list(values)
    ramp = LinearSegmentedColormap.from_list("", [Look(color).color for color in colors])
    return {v: to_hex(ramp(i / max(1, len(values) - 1))) for i, v in enumerate(values)}


def ticks(axis: Axis, values: Iterable[float], labels: Sequence[str] | None = None) -> None:
    """Set the ticks of an axis, and remove its minor ticks.

    values: the positions. labels: their texts; by default the values as plain numbers.
    """
    values = list(values)
    axis.set_ticks(values, labels or [f"{value:,.6g}" for value in values])
    axis.set_minor_locator(NullLocator())


def rail(axes: Axes, end: float, far: float, text="≈ 0", *, lanes=1, log=True,
         axis="y") -> Callable:  # fmt: skip
    """Set the limits of an axis, and reserve a shaded strip, the rail, for values off the scale.

    The axis runs from `far` to `end`, and the rail is beyond `end`. It is for exact values (zero)
    or diverged ones.

    - text: the label of the rail;
    - lanes: the number of parallel lines in the rail, so that marks do not overlap;
    - log: whether the axis is logarithmic;
    - axis: `x` or `y`.

    Returns a function `place(values, lane=0)`. It returns the values as an array. A nan, or a value
    beyond `end`, is moved to the given lane of the rail.
    """
    to: Any = np.log10 if log else np.asarray
    back: Any = (lambda power: 10.0**power) if log else np.asarray
    away, upright = to(end) - to(far), axis == "y"
    roof, foot = back(to(end) + away * 0.035), back(to(end) + away * (0.07 + 0.055 * lanes))
    lane_at = back(to(end) + away * (0.02 + 0.055 * np.arange(lanes, 0, -1)))
    axes.set(**{f"{axis}scale": "log" if log else "linear", f"{axis}lim": sorted((far, foot))})
    (axes.axhspan if upright else axes.axvspan)(roof, foot, color=SHADE, linewidth=0, zorder=0)
    axes.spines["left" if upright else "bottom"].set_bounds(*sorted((end, far)))
    middle = back(to(lane_at).mean())
    across = (axes.get_yaxis_transform if upright else axes.get_xaxis_transform)()
    (x, y), ha = ((-0.02, middle), "right") if upright else ((middle, -0.043), "center")
    axes.text(x, y, text, transform=across, ha=ha, va="center", fontsize=SMALL)

    def place(values: Any, lane: int = 0) -> np.ndarray:
        """Return values, of which those beyond the end are moved into a lane."""
        values = np.asarray(values, dtype=float)
        return np.where((values - end) * (far - end) >= 0, values, lane_at[lane])

    return place


def key(axes: Axes, names: Mapping[str, Look], **place: Any) -> None:
    """Write a key with a sample of each look, as it is drawn, before its name.

    place: options for `Axes.legend`, such as `loc` and `title`.
    """
    for look in names.values():
        look.line(axes, [], [])
    options: dict[str, Any] = {"fontsize": SMALL, "title_fontsize": SMALL, "borderaxespad": 0.2}
    options |= {"handlelength": 1.8, "alignment": "left"}
    drawn = axes.legend(axes.lines[-len(names) :], [*names], **options | place)
    for text, look in zip(drawn.get_texts(), names.values(), strict=True):
        text.set_color(look.ink)


def name_ends(axes: Axes, ends: Sequence[tuple[float, str, Look]]) -> None:
    """Write the names of lines to the right of the axes, moved apart so that none overlap.

    ends: for each line the height of its last point, its name and its look. The limits of the axes
    must be set before.
    """
    names = []
    for y, text, look in [end for end in ends if np.isfinite(end[0])]:
        look.name(axes, 1.03, y, text, transform=axes.transAxes, ha="left", linespacing=1.1)
        names.append((y, axes.texts[-1]))
    if isinstance(axes.figure, Picture):
        axes.figure.ends.append((axes, names))
    place_ends(axes, names)


def place_ends(axes: Axes, names: Sequence[tuple[float, Text]]) -> None:
    """Move names to the ends of their lines, apart from each other.

    names: for each line the height of its last point, and its name beside the axes.
    """
    shown = axes.transData.transform([(axes.get_xlim()[1], y) for y, _ in names] or [(1, 1)])
    placed = ((shown[:, 1] - axes.bbox.y0) / axes.bbox.height)[: len(names)]
    line = 1.22 * axes.figure.dpi / 72 / axes.bbox.height
    points: list[Any] = [name.get_fontsize() for _, name in names]
    lines = np.array([name.get_text().count("\n") + 1 for _, name in names])
    halves = line * np.array(points) * lines / 2
    order = np.argsort(placed, kind="stable")
    for _ in range(300):
        for low, high in zip(order, order[1:], strict=False):
            touch = max(0, halves[low] + halves[high] - (placed[high] - placed[low])) / 2
            placed[low], placed[high] = placed[low] - touch, placed[high] + touch
        placed = np.clip(placed, halves, 1 - halves)
    for (_, name), y in zip(names, placed, strict=True):
        name.set_y(y)
