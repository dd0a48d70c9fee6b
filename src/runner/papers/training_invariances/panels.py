"""Pictures of panels in rows of two, and ticks within the limits of an axis."""

from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from runner.results.drawing import or_empty
from runner.results.rows import Tables
from runner.results.style import panel, sheet, ticks

Part = Callable[[Axes, Tables], pd.DataFrame]
"""Function that draws a panel and returns the plotted numbers."""


def panels_in_pairs(
    tables: Tables, parts: Sequence[tuple[Part, str, str]], **options: float
) -> tuple[Figure, pd.DataFrame]:
    """Draw a picture of an even number of panels, two in a row.

    - parts: for each panel the function that draws it, the title, and the label of the x-axis.
    - options: further arguments of `style.sheet`.

    A panel whose function raises NoRows shows that it has no rows. Returns the picture, and the
    tables of all panels below each other with the panel's name in the column `panel`.
    """
    picture, grid = sheet(len(parts) // 2, 2, **options)
    drawn = [pd.DataFrame({"panel": []})]
    for letter, axes, (part, title, x) in zip("abcd", grid.flat, parts, strict=False):
        with or_empty(axes):
            drawn.append(part(axes, tables).assign(panel=part.__name__.strip("_")))
        is_empty = not axes.has_data()
        panel(axes, letter, title, "" if is_empty else x)
        if is_empty:
            axes.set(xticks=[], yticks=[])
    return picture, pd.concat(drawn)


def ticks_within(axis: Axis, *values: float) -> None:
    """Set the ticks of an axis at those of the given values that are within its limits."""
    low, high = sorted(axis.get_view_interval())
    ticks(axis, [value for value in values if low <= value <= high])
