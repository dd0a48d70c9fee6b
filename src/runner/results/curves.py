"""Draw a table as curves: one line for each series, with its replicates as dots or as a range."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from runner.results.drawing import or_empty
from runner.results.looks import PLAIN, Look, Name
from runner.results.rows import Tables
from runner.results.style import Picture, panel, rail, sheet

End = tuple[float, str, Look]
"""The height of the last point of a line, the line's name, and its look, for `style.name_ends`."""


def curves(axes: Axes, rows: pd.DataFrame, x: str, y: str, series: str | list[str],
           named: Callable[[Any], Name], *, statistic: str = "median",
           replicates: Literal["", "dots", "range"] = "", alpha: float = 0.45,
           height: Callable = np.asarray, first: Iterable[Any] = (), sort: bool = True,
           **options: Any) -> list[End]:  # fmt: skip
    """Draw y against x, a line for each value of the column `series`; return the ends of the lines.

    - rows: a table with a row for each replicate, or a result of `rows.spread`;
    - series: a column, or several columns, whose values are then tuples;
    - named: a function from a value of `series` to its name and look;
    - statistic: what the line is at each x, "median" or "mean" of the replicates;
    - replicates: `dots` draws every number, `range` fills between the smallest and the largest;
    - alpha: opacity of the dots;
    - height: a function from values of y to heights, such as the result of `style.rail`;
    - first: values of `series` whose lines are drawn first, below the others;
    - sort: whether lines are drawn in the order of their values, later ones on top; false: in the
      order of the rows;
    - options: for `Look.line`.
    """
    groups: dict[Any, pd.DataFrame] = dict(iter(rows.groupby(series, sort=sort)))
    low, high = (f"{y}_low", f"{y}_high") if f"{y}_low" in rows else (y, y)
    ends = []
    for value in [value for value in dict.fromkeys([*first, *groups]) if value in groups]:
        group, name = groups[value], named(value)
        at_x, look = group.groupby(x), name.look or PLAIN
        line = at_x[y].agg(statistic)
        if replicates == "dots":
            look.each(axes, group[x], height(group[y]), alpha)
        if replicates == "range":
            look.band(axes, line.index, height(at_x[low].min()), height(at_x[high].max()))
        look.line(axes, line.index, height(line), **{"label": name.drawn} | options)
        ends += [(end, name.drawn, look) for end in np.asarray(height(line))[-1:]]
    return ends


def diverged_apart(axes: Axes, values: Iterable[float]) -> Callable:
    """Set the limits of an axis from zero on; return the option `height` of `curves`.

    Numbers of diverged networks, which are not finite, are drawn in a strip above the axis. Without
    such numbers nothing changes. values: all values of the panel, and other heights that it must
    show.
    """
    heights = np.asarray(list(values), dtype=float)
    finite = heights[np.isfinite(heights)]
    if len(finite) == len(heights):
        return np.asarray
    top = max(finite, default=1.0) or 1.0
    height = rail(axes, top, 0, "NaN", log=False)
    axes.set_yticks([at for at in axes.get_yticks() if at <= top])  # none in the strip
    return height


def with_heights(ends: Sequence[End], digits: int = 2) -> list[End]:
    """Return the ends of lines, each name with the height of its end below it."""
    return [(y, f"{name}:\n{y:.{digits}f}", look) for y, name, look in ends]


@dataclass(frozen=True)
class Panel:
    """A panel with curves from zero on: a table's column y against its column x.

    options: for `curves`, such as the replicates.
    """

    title: str
    table: str
    x: str
    y: str
    options: dict[str, Any] = field(default_factory=dict)


def draw_panels(tables: Tables, panels: Sequence[Panel], series: str, named: Callable, **room: Any
                ) -> tuple[Picture, list[tuple[Axes, list[End]]]]:  # fmt: skip
    """Draw panels next to each other; return the picture, and axes and ends of lines of each panel.

    Diverged networks are drawn in a strip above the others. series, named: as in `curves`. room:
    for `style.sheet`. A panel without rows says so.
    """
    picture, (row,) = sheet(1, len(panels), **room)
    drawn = []
    for letter, axes, shown in zip(ascii_lowercase, row, panels, strict=False):
        panel(axes, letter, shown.title, shown.x)
        drawn.append((axes, list[End]()))
        with or_empty(axes):
            rows, columns = tables[shown.table], (shown.x, shown.y, series)
            apart: dict[str, Any] = {"height": diverged_apart(axes, rows[shown.y])}
            drawn[-1][1].extend(curves(axes, rows, *columns, named, **apart | shown.options))
            axes.set_ylim(0, None)
    return picture, drawn
