"""Formats of pictures: styles for screen and print, style files, sizes.

    with drawn_in(Format("paper", "column")):
        ...                                   # draw and save

Lengths are in inches.
"""

import logging
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.colors import is_color_like, to_hex
from matplotlib.font_manager import FontProperties, findfont

from runner.core.errors import InputError, nearest
from runner.results.looks import BASE, GREY, INK, PALETTE, RECOLORED, SMALL

log = logging.getLogger("runner")

WIDTH = 8.4
"""Width of a sheet in inches."""
WIDTHS = {"column": 3.25, "page": 6.75}
"""Widths of a printed column and of a printed page, as in ICML's proceedings."""
SCREEN: dict[str, Any] = (
    dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK)
    | dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), GREY)
    | dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), SMALL)
    | dict.fromkeys(("axes.spines.top", "axes.spines.right"), False)
    | dict.fromkeys(("xtick.minor.size", "ytick.minor.size"), 0)
    | {"font.family": "DejaVu Sans", "font.size": BASE, "axes.labelsize": BASE}
    | {"savefig.dpi": 200, "lines.solid_capstyle": "round", "legend.frameon": False}
    | {"svg.hashsalt": "runner", "pdf.fonttype": 42}
)
PAPER: dict[str, Any] = SCREEN | {
    "savefig.dpi": 300,
    "font.family": ["STIXGeneral", "DejaVu Sans"],  # like Times; other signs from the second
    "mathtext.fontset": "stix",
}
"""Style for print: as wide as a page, in a font like LaTeX's Times, without a header."""

STYLES: dict[str, dict[str, Any]] = {"screen": SCREEN, "paper": PAPER}
FONT = 7.5
"""Smallest size of printed names and labels in points, unless a style file has `font.size`."""


@dataclass(frozen=True)
class Format:
    """How a picture is drawn.

    - style: `screen`, `paper`, or the path of a style file. Such a file has lines `key: value`:
      settings of matplotlib, as in matplotlib's style files, and colors of series. All other
      settings are those of `paper`.
    - size: `column`, `page`, or inches: `3.3x4` or `3.3`. If empty, the style file's
      `figure.figsize` is used; without it, a printed picture is as wide as a page.
    - header: whether there is a header. Only the style `screen` without a size can have one.
    """

    style: str = "screen"
    size: str = ""
    header: bool = True

    @cached_property
    def lines(self) -> dict[str, str]:
        """Return the lines of the style file by key. The styles in STYLES have none.

        Raises InputError if the style is unknown or the file cannot be read.
        """
        if self.style in STYLES:
            return {}
        if not Path(self.style).is_file():
            what = "unknown" if self.style.isalnum() else "no file"
            raise InputError(f"style={self.style} is {what}: {nearest(self.style, STYLES)}")
        try:
            text = Path(self.style).read_text()
        except (OSError, ValueError) as error:
            raise InputError(f"{self.style} cannot be read ({error})") from error
        lines = {}
        for line in text.splitlines():
            pair = re.fullmatch(r"\s*(?:([^:#]+?)\s*:\s*([^\s#].*?))?\s*(?:(?<!\S)#.*)?", line)
            if not pair:
                raise InputError(f"{self.style}: {line.strip()}: a line must be `key: value`")
            lines[pair[1]] = (pair[2] or "").strip("\"'")
        lines.pop(None, None)  # from empty lines and comments
        return lines

    @cached_property
    def settings(self) -> dict[Any, Any]:
        """Return the settings of matplotlib by key.

        Raises InputError for a wrong value, and for a font or a program that is absent.
        """
        settings: dict[Any, Any] = dict(STYLES.get(self.style, PAPER))
        if not re.fullmatch(r"[1-9]\d?(\.\d*)?", size := self.lines.get("font.size", "8")):
            raise InputError(f"{self.style}: font.size: {size}: give a number of points, as in 8")
        validate: Any = matplotlib.RcParams
        for key in self.lines.keys() & matplotlib.rcParams.keys() - {"font.size"}:
            try:
                settings[key] = validate({key: self.lines[key]})[key]
            except ValueError as error:
                why = " ".join(str(error).split())
                raise InputError(f"{self.style}: {key}: {self.lines[key]}: {why}") from error
        if "font.family" in self.lines:
            try:
                findfont(FontProperties(family=settings["font.family"]), fallback_to_default=False)
            except ValueError as error:
                name = self.lines["font.family"]
                raise InputError(f"{self.style}: font.family: {name} is not installed") from error
        if settings.get("text.usetex") and not shutil.which("latex"):
            raise InputError(f"{self.style}: text.usetex: LaTeX is not installed")
        return settings

    def colors(self, looks: Mapping[str, Any]) -> dict[str, str]:
        """Return which colors the style file replaces: a dictionary from old to new colors.

        looks: the looks of the figure's series by name; a line of the file may name a series. If
        there are none, the file is only checked.
        Raises InputError for a key with a dot that is not a setting of matplotlib, and for an
        unknown color.
        """
        cycle = self.settings.get("axes.prop_cycle")
        new = cycle.by_key().get("color", []) if cycle else []
        colors = {old: to_hex(color) for old, color in zip(PALETTE, new, strict=False)}
        for name in self.lines.keys() - matplotlib.rcParams.keys():
            if "." in name:
                raise InputError(f"{self.style}: {name}: {nearest(name, matplotlib.rcParams)}")
            if not is_color_like(color := self.lines[name]):
                raise InputError(f"{self.style}: {name}: {color} is no color, as '#0072B2' is")
            if name in looks:
                colors[looks[name].hue] = to_hex(color)
            elif looks:  # the file may be for several figures
                log.warning("%s: no series of this figure is called %s", self.style, name)
        return colors

    @cached_property
    def inches(self) -> tuple[float, float | None]:
        """Return width and height of the picture in inches.

        If the height is None, the drawing chooses it. Raises InputError for any other size than
        `column`, `page`, `3.3` or `3.3x4`.
        """
        if self.size in WIDTHS:
            return WIDTHS[self.size], None
        numbers = re.fullmatch(r"(\d+\.?\d*)(?:x(\d+\.?\d*))?", self.size)
        if numbers and 2 <= float(numbers[1]) <= 40 and 1 <= float(numbers[2] or 1) <= 40:
            return float(numbers[1]), float(numbers[2]) if numbers[2] else None
        if self.size:
            raise InputError(f"size={self.size} is not column, page or inches, as 3.3x4 (2 to 40)")
        if "figure.figsize" in self.settings:
            return tuple(self.settings["figure.figsize"])
        return (WIDTH if self.style == "screen" else WIDTHS["page"]), None

    @property
    def share(self) -> float:
        """Return the factor by which a sheet shrinks in print, with its lines and texts."""
        size = float(self.lines.get("font.size", max(FONT, BASE * self.inches[0] / WIDTH)))
        return size / BASE

    @property
    def has_header(self) -> bool:
        """Return whether there is a header."""
        return self.header and self.style == "screen" and not self.size


_SCREEN = Format()
FORMAT: ContextVar[Format] = ContextVar("format", default=_SCREEN)
"""The format of the pictures that are being drawn."""


@contextmanager
def settings_of(form: Format) -> Iterator[None]:
    """Use the settings of a format within the block. The user's `matplotlibrc` has no effect."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(form.settings)
        yield


@contextmanager
def drawn_in(form: Format | str, looks: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Draw and save pictures in a format within the block.

    The user's `matplotlibrc` has no effect there. form: a format, or the name of a style. looks:
    the looks of the series by name; a style file may replace their colors. Raises InputError for an
    unknown style or size, and for a damaged style file.
    """
    form = Format(form) if isinstance(form, str) else form
    colors, token = RECOLORED.set(form.colors(looks or {})), FORMAT.set(form)
    try:
        with settings_of(form):
            yield
    finally:
        RECOLORED.reset(colors)
        FORMAT.reset(token)
