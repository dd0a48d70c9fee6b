"""The picture of a sweep, and the medians that it draws.

plot = Sweep(runs).choose()
medians(plot)                             # a row for each point of a line
draw(plot)                                # the picture
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from runner.core.catalogue import title_of
from runner.results import style
from runner.results.drawing import DOT
from runner.results.evidence import median_limits
from runner.results.finishing import save
from runner.results.formats import drawn_in
from runner.results.labels import names_of
from runner.results.looks import SMALL
from runner.results.preview import printed
from runner.results.sweeps import SweepPlot, is_number, joined
from runner.runs.files import write_atomically

MOST_TICKS = 8
"""Largest number of values whose ticks have names."""

LETTER = 0.1
"""Width of a letter of a tick's label, in inches."""

LINE, SLANTED = 0.18, 14
"""Height of a line in inches, of the table under a picture and of a tick's label; most letters in
a line of a slanted label."""

MARKERS, DASHES = "osD^vPXh", ("-", style.DASHED, style.DOTTED, (0, (6, 1.5, 1, 1.5)))

ASIDE = {"by", "at", "run", "replicate", "value", "copy"}
"""Columns of a picture's points that do not tell its lines apart."""

Series = dict[tuple[Any, str], tuple[str, style.Look]]
"""The name and look of each pair of a color's value and a method."""


def draw(plot: SweepPlot) -> style.Picture:
    """Return the picture of a sweep, with its header.

    To draw and save it in another style, use the block `with drawn_in(...)`.
    """
    points, names, series = plot.points, names_of(plot.study), _series(plot)
    values = [None] if plot.panel == "number" else points[plot.panel].unique()
    cells = [(number, value) for number in points["number"].unique() for value in values]
    columns = 3 if len(cells) == 3 else min(len(cells), 2)
    columns = columns if values[0] is None else len(values)
    rows = -(-len(cells) // columns)
    kinds = [plot.color.removeprefix("line"), *", ".join(points["by"].unique()).split(", ")]
    title = fill(joined(map(names.column, kinds)), 24)
    labels = [text for text, _ in series.values()]
    longest = max(map(len, "\n".join([title, *labels]).split("\n")))
    room: dict[str, Any] = {"height": 3.2 * rows, "right": 0.75 + 0.1 * longest if title else 0.25}
    room |= {"gap": 0.65, "sharey": "none" if values[0] is None else "row"}
    wide = (style.WIDTH - 0.75 - room["right"] - 0.65 * (columns - 1)) / columns
    below = _tick_names(plot, [*points[plot.x].unique()], wide)[1]
    room["height"] += rows * below
    room |= {"bottom": 0.62 + below, "between": (between := 1.05 + below)}
    lines = 0 if plot.board is None else len(plot.board) + 1
    if lines:
        high, of_panel = LINE * lines, room["height"] / rows - between
        room |= {"height": room["height"] + high + between, "heights": [of_panel] * rows + [high]}
    picture, grid = style.sheet(rows + (lines > 0), columns, **room)
    for letter, axes, (number, value) in zip("abcdefghijklmnop", grid.flat, cells, strict=False):
        _draw_panel(plot, axes, points[points["number"] == number], value, series)
        above = names.column(number.rpartition(".")[2])
        if value is not None:
            above += f", {names.column(plot.panel)} {names.value(plot.panel, value)}"
        style.panel(axes, letter, above, names.column(plot.x))
    for axes in grid.flat[len(cells) :]:
        axes.set_axis_off()
    if plot.board is not None:
        text = printed(plot.board, plot.study)
        widest = max(map(len, text.split("\n"))) * LETTER * 0.85
        size = SMALL * min(1, (picture.get_figwidth() - 1) / widest)
        grid[-1, 0].text(0, 1, text, family="monospace", size=size, va="top", linespacing=1.3)
    for text, look in series.values():
        look.line(grid[0, -1], [], [], label=text, markersize=5)
    if title:
        position: Any = {"loc": "upper left", "bbox_to_anchor": (1, 1.03)}
        grid[0, -1].legend(title=title, alignment="left", handlelength=2.2, **position)
    paper, colon, _ = title_of("study", plot.study).partition(": ")
    source = f"{paper}{DOT}study {plot.study}" if colon else f"Study {plot.study}"
    picture.add_header(DOT.join((source, *plot.notes)), plot.headline)
    return picture


def _series(plot: SweepPlot) -> Series:
    """Return name and look of each pair of a color's value and a method.

    A value with a look in `names.py` has this look's color here, too; its markers and dashes are
    used if the other part of the pair is always the same. Otherwise markers and dashes distinguish
    the methods. All other values have colors that none of these looks has.
    """
    names, points = names_of(plot.study), plot.points
    hues, lines = (list(points[column].unique()) for column in (plot.color, "line"))
    found: dict[tuple[Any, str], tuple[str, style.Look | None]] = {}
    for (hue, line), rows in points.groupby([plot.color, "line"], sort=False):
        by = rows["by"].iloc[0]
        if plot.color == "line":
            look, text = names.look(by, rows[by].iloc[0] if by in rows else line), line
        else:
            look = names.look(plot.color, hue)
            text = joined([names.value(plot.color, hue), line])
        found[hue, line] = text, look
    taken = {look.hue for _, look in found.values() if look}
    unknown = list(dict.fromkeys(hue for (hue, _), (_, look) in found.items() if not look))
    colors = [color for color in style.PALETTE if color not in taken] or style.PALETTE
    if is_number(points[plot.color]):
        colors = list(style.shades(unknown, style.SKY, style.BLUE, style.NAVY).values())
    series: Series = {}
    for (hue, line), (text, look) in found.items():
        if not look or plot.color != "line" and len(lines) > 1:
            i = lines.index(line) if len(lines) > 1 else hues.index(hue)
            color = look.hue if look else colors[unknown.index(hue) % len(colors)]
            look = style.Look(color, MARKERS[i % 8], DASHES[i % 4], 1.8)
        series[hue, line] = fill(text, 24), look
    return series


def _draw_panel(
    plot: SweepPlot, axes: Axes, points: pd.DataFrame, value: Any, series: Series
) -> None:
    """Draw the points of one measurement into a panel.

    value: only points with this value of `plot.panel` are drawn; None draws all.
    """
    values, numeric = list(points[plot.x].unique()), is_number(points[plot.x])
    position, size = _y_axis(axes, points["value"]), 5 if len(values) <= MOST_TICKS else 0
    axes.set_xscale(**(_scale(points[plot.x]) if numeric else {"value": "linear"}))
    if size or not numeric:
        _name_ticks(axes, plot, values, numeric)
    drawn = points if value is None else points[points[plot.panel] == value]
    for key, part in drawn.groupby([plot.color, "line", "curve"], sort=False):
        aside = ([*series].index(key[:2]) - (len(series) - 1) / 2) * min(0.14, 0.7 / len(series))
        x = part[plot.x] if numeric else part[plot.x].map(values.index) + aside
        _, look = series[key[:2]]
        heights = part["value"].where(np.isfinite(part["value"]), np.inf)
        look.each(axes, x, position(heights))
        line, dashes = _line(part, x, plot.band), look.dashes if numeric else ""
        drawn_as: Any = {"markersize": size, "linestyle": dashes}
        drawn_as["zorder"] = 3 - look.width / 10  # a narrow line is seen on a wide one
        look.line(axes, line.index, position(line["median"]), **drawn_as)
        if plot.band:
            edges = [line[name].where(line["low"] > -np.inf) for name in ("low", "high")]
            placed = [np.where(edge.isna(), np.nan, position(edge)) for edge in edges]
            (look.band if numeric else look.bars)(axes, line.index, *placed)


def _line(part: pd.DataFrame, x: pd.Series, band: bool) -> pd.DataFrame:
    """Return the points of a line: `median`, and `n`, the number of networks, at each x.

    A value that is not finite counts as infinity. With a band there are also `low` and `high`, as
    `median_limits` gives them. There, a network with several numbers counts once, with their
    median. part: the dots of the line.
    """
    values = part["value"].where(np.isfinite(part["value"]))
    by = [part[name] for name in ("run", "replicate") if name in part]
    of_each = values.groupby([x.rename("x"), *by], dropna=False).median().groupby("x")
    line = pd.DataFrame({"median": values.fillna(np.inf).groupby(x).median(), "n": of_each.size()})
    if band:
        limits = of_each.agg(lambda group: median_limits(group.to_numpy()))
        line = line.assign(low=limits.str[0], high=limits.str[1])
    return line


def medians(plot: SweepPlot) -> pd.DataFrame:
    """Return the points of all lines: what tells them apart, and the columns of `_line`."""
    points = plot.points
    known = ["number", plot.panel, plot.color, "line", "curve"]
    kinds = [name for name in points if name not in {*known, *ASIDE, plot.x}]
    by = [name for name in dict.fromkeys([*known, *kinds]) if (points[name] != "").any()]
    groups = points.groupby(by, sort=False, dropna=False)
    lines = [
        _line(part, part[plot.x], plot.band)
        .rename_axis(plot.x)
        .reset_index()
        .assign(**dict(zip(by, key, strict=True)))
        for key, part in groups
    ]
    table = pd.concat(lines, ignore_index=True)
    return table[[*by, *(name for name in table if name not in by)]]


def _name_ticks(axes: Axes, plot: SweepPlot, values: Sequence[Any], is_number: bool) -> None:
    """Write the names of values below the x-axis, in several lines if they are long."""
    labels, _, slant = _tick_names(plot, values, axes.bbox.width / axes.figure.dpi)
    style.ticks(axes.xaxis, values if is_number else range(len(values)), labels)
    if slant:
        for text in axes.get_xticklabels():
            text.set(rotation=40, ha="right", rotation_mode="anchor")


def _tick_names(
    plot: SweepPlot, values: Sequence[Any], inches: float
) -> tuple[list[str], float, bool]:
    """Return the names of values on the x-axis in lines, and whether they are written aslant.

    They are if a word is longer than its place. The second result is the height in inches that they
    need beyond two lines. inches: the width of the axis.
    """
    texts = [names_of(plot.study).value(plot.x, value) for value in values]
    if is_number(plot.points[plot.x]):
        return texts, 0.0, False
    room = int(inches / max(1, len(values)) / LETTER)
    if slant := any(len(word) > room for text in texts for word in re.split(r"[_:./\s]", text)):
        room = SLANTED
    labels = [in_lines(text, room) for text in texts]
    lines = max(label.count("\n") for label in labels) - 1
    longest = max(len(line) for label in labels for line in label.split("\n"))
    return labels, LINE * max(0, lines) + slant * 0.6 * LETTER * longest, slant


def in_lines(text: str, room: int) -> str:
    """Return a name in lines of at most `room` letters, broken after a blank, `_`, `:`, `.` or `/`.

    Only a part that is longer than a line is broken elsewhere.
    """
    parts = re.findall(rf"\S{{1,{room}}}?(?:[_:./]|\s+|$)|\S{{1,{room}}}", text)
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1] + part.rstrip()) > room:
            lines.append("")
        lines[-1] += part
    return "\n".join(map(str.rstrip, lines))


def _y_axis(axes: Axes, values: pd.Series) -> Callable[[Any], Any]:
    """Set up the vertical axis, with a rail for diverged values.

    values: all values of the panel. Returns a function that moves diverged values into the rail.
    """
    finite = values[np.isfinite(values)]
    scale, low, high = _scale(finite), finite.min(), finite.max()
    if 0 < len(finite) < len(values):
        log = scale["value"] == "log"
        far = low * (low / high) ** 0.05 if log else low - 0.05 * (high - low or abs(high) or 1)
        return style.rail(axes, high, far, "diverged", log=log)
    axes.set_yscale(**scale)
    return np.asarray


def _scale(values: pd.Series) -> dict[str, Any]:
    """Return the scale of an axis: logarithmic for values of equal ratios, or over two decades.

    With zeros it is symlog. With negative values it is linear.
    """
    positive = np.sort(values[values > 0].unique())
    steps = positive[1:] / positive[:-1]
    if (values < 0).any() or steps.prod() < 100 and (len(steps) < 2 or np.ptp(steps) > 1e-9):
        return {"value": "linear"}
    decade = 10.0 ** np.floor(np.log10(positive[0]))
    return {"value": "log"} if (values > 0).all() else {"value": "symlog", "linthresh": decade}


def write(
    plot: SweepPlot, outputs: Path, out: Path | None = None, with_numbers: bool = False
) -> Path:
    """Write the picture of a sweep; return its path.

    out: the path of the picture. with_numbers: whether `medians` are written next to it, as CSV.
    Without `out`, the picture (PNG and PDF), the medians and the caption are written into
    `<outputs>/sweeps/`. Raises OSError if a file cannot be written.
    """
    path = out or outputs / "sweeps" / f"{plot.name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    with drawn_in("screen"):
        save(draw(plot), path.with_suffix(""), [path.suffix[1:]] if out else ["png", "pdf"])
    if with_numbers or not out:
        write_atomically(path.with_suffix(".csv"), medians(plot).to_csv(index=False).encode())
    if not out:
        write_atomically(path.with_suffix(".caption.txt"), plot.caption.encode())
    return path
