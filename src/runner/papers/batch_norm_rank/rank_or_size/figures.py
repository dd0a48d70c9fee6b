"""Draw the figure of study `rank_or_size`, and the preview of one run."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.batch_norm_rank.learning import chance_level
from runner.papers.batch_norm_rank.names import NAMES
from runner.papers.batch_norm_rank.rank_or_size.tables import (
    ARM,
    AT_SIZE_1,
    networks,
    of_family,
)
from runner.results.curves import End
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.looks import Name, name_of
from runner.results.rows import Tables, nonempty, select, spread
from runner.results.style import GREY, level, name_ends, own_look, panel, sheet, ticks

LINES = {
    "sized": ("even", "sized", "signed"),
    "sized_layer_rates": ("unscaled_layer_rates", "sized_layer_rates"),
    "default_biases": ("default_biases", "default_biases_unit"),
    "pixels_255": ("pixels_255",),
    "pretrained": ("pretrained_small", "pretrained"),
    "size_of_pretrained": ("size_of_pretrained",),
    "batch_norm": ("batch_norm",),
}
"""The lines of panel b by their name, each with the families that it joins."""


def _name(family: str) -> Name:
    return name_of(NAMES["family"], family)


WITHOUT_NAME = ("pixels_255",)
"""Families that are grey and have no name in panel b; the caption names them."""


def _line(axes: Axes, rows: pd.DataFrame, name: str, x: str) -> Iterator[End]:
    """Draw the accuracies of networks against their median x, as one line; yield its end.

    name: the family whose name and look the line has.
    """
    if rows.empty:
        return
    look = _name(name).look or own_look("family", name)
    look = replace(look, hue=GREY) if name in WITHOUT_NAME else look
    points = rows.groupby(ARM)[[x, "train_accuracy"]].median().sort_values([x, *ARM])
    at_x = rows.set_index(ARM)[[]].join(points[x])[x]
    look.each(axes, at_x, rows.set_index(ARM)["train_accuracy"], alpha=0.3)
    look.line(axes, points[x], points["train_accuracy"])
    if name not in WITHOUT_NAME:
        yield points["train_accuracy"].iloc[-1], _name(name).drawn, look


def _number(axes: Axes, rows: pd.DataFrame) -> None:
    """Write the median accuracies of rank 4 and of full rank, which are compared, at their points.

    rows: the networks of family `product`.
    """
    look = _name("product").look or own_look("family", "product")
    points = rows.groupby("level")[["rank", "train_accuracy"]].median()
    for k in {4, points.index.max()} & {*points.index}:
        rank, accuracy = points.loc[k]
        away: dict = {"textcoords": "offset points", "xytext": (0, 12 if k == 4 else -13)}
        look.name(axes, rank, accuracy, f"{accuracy:.2f}", **away)


def draw_rank_or_size(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the accuracy against the rank at size 1, and against the size at full rank.

    Returns the picture, and a table with median and range of each initialization. Raises NoRows
    without networks.
    """
    rows = networks(tables)
    picture, ((left, right),) = sheet(1, 2, height=4.6, gap=1.5, right=1.55)
    for axes in (left, right):
        axes.set(xscale="log", ylim=(0, 1.03))
        level(axes, chance_level(tables), "chance", at=0.4, above=False)
    with or_empty(left):
        at_1, ends = nonempty(rows[rows["family"].isin(AT_SIZE_1)], "networks of size 1"), []
        for family in AT_SIZE_1:
            ends += _line(left, at_1[at_1["family"] == family], family, "rank")
        _number(left, at_1[at_1["family"] == "product"])
        most = at_1["rank"].max()
        left.set_xlim(0.6, 1.5 * most)
        ticks(left.xaxis, [2**power for power in range(12) if 2**power <= most])
        name_ends(left, ends)
    with or_empty(right):
        ends = []
        for name, families in LINES.items():
            ends += _line(right, rows[rows["family"].isin(families)], name, "size")
        decaying = rows[rows["family"] == "unscaled"]
        if decaying.size:
            look = _name("unscaled").look or own_look("family", "unscaled")
            median = decaying[["size", "train_accuracy"]].median()
            look.line(right, [median["size"]], [median["train_accuracy"]], linestyle="")
        nonempty(pd.Series(ends, dtype=object), "networks of several sizes")
        low, high = right.get_xlim()
        right.set_xlim(low / 2, 2 * high)
        name_ends(right, ends)
    panel(left, "a", "training accuracy, size 1", "rank of the last hidden layer")
    panel(right, "b", "training accuracy, full rank", "size of the last hidden layer")
    measures = ["rank", "rank_bound", "deviations_bound", "size", "spread", "train_accuracy"]
    return picture, spread(rows, [*ARM, "learning_rate", "end"], measures)


def middle(tables: Tables, family: str, rank: int | None = None) -> float:
    """Return the median accuracy of a family. Raises NoRows if it was not run.

    rank: the level of the family; None: the largest.
    """
    rows = of_family(networks(tables), family)
    chosen = rows["level"].max() if rank is None else rank
    return float(select(rows, level=chosen)["train_accuracy"].median())


def say_ranks(tables: Tables, says: str) -> str:
    """Return the headline, with median accuracies of rank 4, of full rank and of random signs.

    says: a value of RANK_4. Raises NoRows if a network was not run.
    """
    few, full = (middle(tables, "product", rank) for rank in (4, None))
    return says.format(
        few=f"{few:.2f}", full=f"{full:.2f}", signed=f"{middle(tables, 'signed'):.2f}"
    )


RANK_4 = {
    "holds": "At size 1, rank 4 learns as well as full rank ({few} and {full}), random signs better"
    " ({signed})",
    "fails": "At size 1, rank 4 and full rank learn differently ({few} and {full}); random signs"
    " reach {signed}",
    "undecided": "At size 1 it is undecided whether rank 4 learns as well as full rank ({few} and"
    " {full})",
}
"""The headline by the verdict of the claim `rank-4-is-enough`."""


def caption(tables: Tables) -> str:
    """Return the caption: panels and marks, and the networks whose best rate ends their grid."""
    rows = networks(tables).drop_duplicates(ARM)
    learned = rows[(rows["end"] != "") & (rows["train_accuracy"] > 2 * chance_level(tables))]
    at_ends = [
        f"{_name(row.family).printed} ({row.level:g})".replace("\n", " ").replace(" (0)", "")
        for row in learned.itertuples()
    ]
    words = (
        "Plain networks begin with zero biases, unless they are called otherwise. (a) shows the"
        " training accuracy in the last epoch against the rank of the last hidden layer. Every"
        " layer has root mean square 1 (size 1). The last weights are a product A B of positive"
        " matrices of rank k, or positive above k copied units, or Glorot weights with all, some"
        " or no signs made positive. (b) shows the training accuracy against the size of the last"
        " hidden layer. The blue line joins networks whose layers all have this size; hollow: the"
        " size falls from layer to layer. Grey networks have pixels × 255 and default biases. The"
        " figure's table has r of each network. With a rate for each layer, every layer"
        " changes relative to its size as at size 1. Marks are medians, dots networks. Each"
        " network has the best of several learning rates, which other replicates chose."
    )
    return words + f" This is an end of the grid for {', '.join(at_ends)}." * bool(at_ends)


overview = draw_rank_or_size

TITLE = "training accuracy by rank and by size"

CAPTION = "Accuracy by rank at size 1, and by size. Marks are medians, dots networks."
"""Title and caption of the preview."""

HEADLINE = ["rank_bound", "deviations_bound", "train_accuracy"]

FIGURES = [
    Drawing(
        "rank-or-size",
        draw_rank_or_size,
        whose="ours, following the authors' code",
        findings=[
            Finding(partial(say_ranks, says=says), **{verdict: ["rank-4-is-enough"]})
            for verdict, says in RANK_4.items()
        ],
        marks="marks: medians, dots: networks",
        caption=caption,
    ),
]
