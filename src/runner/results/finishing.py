"""The last steps of a drawn picture: ticks, margins, size in print, files."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.offsetbox import OffsetBox
from matplotlib.text import Annotation
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter

from runner.results.style import SMALL, Picture, as_bytes, place_ends
from runner.runs.files import write_atomically

MARGIN = 0.08
"""Inches at both sides of a picture of a given size."""


PARTS = "parts"
"""The folder for files that only the program reads, within the folder of the figures."""

PART_ENDS = ("body.png", "header.json", "rules.json", "sums.json", "drawn-from")
"""The endings of these files."""


def place(stem: Path, end: str) -> Path:
    """Return the path of a figure's file.

    It is `<stem>.<end>`, or for an ending in PART_ENDS the file of this name in the folder PARTS
    beside. stem: the figure's folder and name. end: the ending, such as `claims.csv`.
    """
    folder = stem.parent / PARTS if end in PART_ENDS else stem.parent
    return folder / f"{stem.name}.{end}"


def found(stem: Path, end: str) -> Path:
    """Return the path of a figure's file, at its `place` or where version 2.0 wrote it.

    Version 2.0 wrote all files beside the picture. stem, end: as in `place`.
    """
    here, before = place(stem, end), stem.with_name(f"{stem.name}.{end}")
    return before if before.exists() and not here.exists() else here


def settle(picture: Figure) -> None:
    """Remove minor ticks and repair logarithmic axes, after a picture is drawn.

    A logarithmic axis whose lower limit is not positive begins below the smallest positive point.
    It becomes linear if there is none, or its limits are infinite or equal, since matplotlib cannot
    draw it. A logarithmic axis with fewer than two ticks in view gets ticks at 1, 2 and 5 times the
    powers of ten, unless its ticks were set by hand. Labels of a linear axis get a comma at
    thousands. The picture will be settled again when it is drawn with changed axes.
    """
    for axes in picture.axes:
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            low, high = sorted(axis.get_view_interval())
            least = getattr(axes.dataLim, f"minpos{name}") / 1.25
            if axis.get_scale() == "log" and low <= 0 < least < high < inf:
                axes.set(**{f"{name}lim": (low := least, high)})
            if axis.get_scale() == "log" and not 0 < low < high < inf:
                axes.set(**{f"{name}scale": "linear"})
            shown = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
            if isinstance(axis.get_major_locator(), LogLocator) and len(shown) < 2:
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter("{x:,g}")
            is_plain = isinstance(axis.get_major_formatter(), ScalarFormatter)
            if axis.get_scale() == "linear" and is_plain and 1000 <= max(shown, default=0) < 1e6:
                axis.set_major_formatter("{x:,.6g}")
            if axis.isDefault_minloc:
                axis.set_minor_locator(NullLocator())
    if isinstance(picture, Picture):
        views = {axes: _view(axes) for axes in picture.axes}
        picture.follow = partial(_follow, picture, views)


def _view(axes: Axes) -> tuple[Any, ...]:
    return axes.get_xscale(), axes.get_yscale(), *axes.get_xlim(), *axes.get_ylim()


def _follow(picture: Picture, views: Mapping[Axes, tuple[Any, ...]]) -> None:
    """Adapt a picture to axes whose scale or limits were changed after `settle`.

    Their ticks are settled anew, names are moved to the ends of their lines, and the margins of a
    picture of a given size fit its labels. Keys and names within a panel stay where they are.
    views: scales and limits after `settle`.
    """
    changed = [axes for axes, view in views.items() if view != _view(axes)]
    if not changed:
        return
    settle(picture)
    for axes, names in picture.ends:
        if axes in changed:
            place_ends(axes, names)
    if picture.form.size:
        fit(picture)


def fit(picture: Picture) -> None:
    """Set the left and right margins of a picture, so that no text is cut and no room is wasted.

    A picture that matplotlib lays out automatically is not changed.
    """
    if picture.get_layout_engine() is not None:
        return
    for text in [text for axes in picture.axes for text in axes.texts]:
        text.set_in_layout(True)
    for _ in range(2):  # names beside the axes move with them
        picture.draw_without_rendering()
        drawn, width = picture.get_tightbbox(), picture.get_figwidth()
        boxes = [axes.get_position() for axes in picture.axes]
        old = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
        new = old[0] + (MARGIN - drawn.x0) / width, old[1] + (width - MARGIN - drawn.x1) / width
        for axes, box in zip(picture.axes, boxes, strict=True):
            x0, x1 = np.interp([box.x0, box.x1], old, new)
            axes.set_position((x0, box.y0, x1 - x0, box.height))


def shrink(picture: Picture) -> None:
    """Shrink a drawn picture with its lines and texts in place, by the factor `picture.share`."""
    share = picture.share
    picture.set_size_inches(*(picture.get_size_inches() * share))
    for artist in picture.findobj():
        for size in ("linewidth", "markersize", "markeredgewidth", "fontsize"):
            if hasattr(artist, f"set_{size}"):
                getattr(artist, f"set_{size}")(np.multiply(getattr(artist, f"get_{size}")(), share))
        for size in ("pad", "sep", "width", "height"):
            if isinstance(artist, OffsetBox) and getattr(artist, size, None):  # part of a legend
                setattr(artist, size, getattr(artist, size) * share)
        if isinstance(artist, Legend):
            for line in artist.get_lines():
                line.set_data(np.asarray(line.get_xydata()).T * share)
        if isinstance(artist, Annotation) and artist.anncoords == "offset points":
            x, y = artist.get_position()
            artist.set_position((x * share, y * share))
    for axes in picture.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_tick_params(labelsize=SMALL * share, length=3.5 * share, width=0.8 * share)
            axis.labelpad *= share


def save(
    picture: Figure,
    path: Path,
    ends: Sequence[str] = ("png", "body.png", "pdf", "svg"),
    write: Callable[[Path, bytes], None] = write_atomically,
) -> None:
    """Write a picture into the files `place(path, end)`, one for each ending in `ends`.

    The ending `body.png` means a PNG without the header. Equal pictures give equal files. write:
    the function that writes the content of a file.
    """
    logging.getLogger("fontTools").setLevel(logging.ERROR)  # warns about the dates of fonts
    for end in ends:
        bare = {"header": False} if end == "body.png" and isinstance(picture, Picture) else {}
        if end == "svg":
            _round_positions(picture)
        content = as_bytes(picture, end.rpartition(".")[2], **bare)
        write(place(path, end), content)
        picture.set_layout_engine(None)  # "none" would lay out once more


def _round_positions(picture: Figure) -> None:
    """Round the positions of the axes: the layout's solver differs in their last digits.

    An SVG names its clip paths after the exact positions.
    """
    for axes in picture.axes:
        axes.set_position(np.round(axes.get_position(original=True).bounds, 10))
