"""Draw what several figures of `pretraining` share: curves by epoch, axes of losses."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from runner.papers.batch_norm_rank.looks import look
from runner.papers.batch_norm_rank.looks import named as name_of
from runner.papers.batch_norm_rank.names import NAMES
from runner.papers.batch_norm_rank.pretraining.tables import (
    VARIANT,
    at_chosen_rates,
    deepest,
    named,
    of_protocol,
)
from runner.results.curves import End, curves
from runner.results.looks import Name
from runner.results.rows import Tables, spread
from runner.results.style import is_at_left, rail, ticks

MOST = 25.0
"""The largest loss that a panel shows: ten times the loss at chance level."""

COLUMNS = ["train_loss", "train_accuracy", "test_loss", "rank", "rank_bound", "mean_rank_bound"]


def by_epoch(tables: Tables) -> pd.DataFrame:
    """Return median and range of every measure in COLUMNS, a row for each network, depth and epoch.

    Losses that are not finite count in the median and not in the range.
    """
    rows = at_chosen_rates(tables)
    keys = ["protocol", "depth", *VARIANT, "learning_rate", "epoch"]
    medians = spread(rows, keys, COLUMNS)
    finite = spread(rows.replace(np.inf, np.nan), keys, COLUMNS)
    return medians.assign(**finite.filter(regex="_(low|high)$"))


def lines_by_epoch(axes: Axes, drawn: pd.DataFrame, column: str, height: Callable = np.asarray,
                   bands: bool = True, wide: bool = False) -> list[End]:  # fmt: skip
    """Draw a line for each network by epoch; return the ends of the lines.

    height: function from values to heights. bands: whether to draw ranges as bands. wide: whether
    the line of plain networks is wide and lies under all other lines.
    """
    several, plain = len(set(drawn["pretraining_steps"]) - {0}) > 1, ("vanilla", 0)

    def named(kind: tuple[str, int]) -> Name:
        drawn_as, text = look(*kind), NAMES["method"][kind[0]].drawn
        if kind == plain and wide:
            drawn_as = replace(drawn_as, width=5.0, size=12)
        return Name(f"pre-trained,\n{kind[1]} steps" if several and kind[1] else text, drawn_as)

    options: Any = {"replicates": "range" if bands else "", "first": [plain] if wide else []}
    ends = curves(axes, drawn, "epoch", column, VARIANT, named, height=height, marker="", **options)
    axes.set_xlim(0, 1.03 * max(1, drawn["epoch"].max()))
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=4)
    return ends


def scale_losses(row: Sequence[Axes], values: pd.Series) -> Callable:
    """Set logarithmic axes for losses in a row of panels; return the function from loss to height.

    Diverged networks are drawn on a separate line at the upper end.
    """
    shown, position = values[values <= MOST], np.asarray
    low, top = (0.8 * shown.min(), 1.15 * shown.max()) if len(shown) else (0.1, MOST)
    for axes in row:
        axes.set(yscale="log", ylim=(low, top))
        if len(shown) < len(values):
            position = rail(axes, top, low, "diverged" if is_at_left(axes) else "")
    for digits in ((1, 2, 5), (1, 1.5, 2, 2.5, 3, 4, 5, 7)):
        marks = [digit * 10.0**power for power in range(-4, 2) for digit in digits]
        marks = [mark for mark in marks if low < mark < top]
        if len(marks) > 2:
            break
    for axes in row:
        ticks(axes.yaxis, marks)
    return position


def say_rates(tables: Tables) -> str:
    """Return in words the most frequent learning rate, and the other rates with their networks."""
    rows = at_chosen_rates(tables).drop_duplicates(["depth", *VARIANT])
    usual, *other_rates = rows["learning_rate"].value_counts().index
    words = [f"{usual:g}"]
    for rate in other_rates:
        methods_by_depth = (
            rows[rows["learning_rate"] == rate].sort_values("depth").groupby("depth")["method"]
        )
        networks = [
            f"{' and '.join(map(name_of, methods))} at depth {d}" for d, methods in methods_by_depth
        ]
        words.append(f"{rate:g} for {', '.join(networks)}")
    return "; ".join(words)


def middle(rows: pd.DataFrame, network: str, column: str) -> float:
    """Return the median of a column over the deepest networks of protocol `authors`.

    network: a network's name or method, such as "M = 75" or "vanilla". Raises NoRows if the network
    was not run.
    """
    return float(named(of_protocol(deepest(rows), "authors"), network)[column].median())


HELPS = {
    "holds": "pre-training helps plain networks",
    "fails": "pre-training does not help plain networks",
    "undecided": "it is undecided whether pre-training helps",
}
"""First half of the headline, by the verdict of the claim that pre-training helps."""
