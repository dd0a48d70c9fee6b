"""Draw the figure of study `rank_or_size`, and the preview of one run."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.batch_norm_rank.learning import chance_level
from runner.papers.batch_norm_rank.names import NAMES
from runner.papers.batch_norm_rank.rank_or_size.tables import (
    ARM,
    MARGIN,
    networks,
    of_family,
)
from runner.results.curves import End
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.looks import PLAIN, Look, Name, name_of
from runner.results.rows import NoRows, Tables, nonempty, select, spread
from runner.results.style import level, name_ends, own_look, panel, sheet, ticks

AT_FULL_RANK = {
    "sized": ("even", "sized", "signed"),
    "batch_norm": ("batch_norm",),
    "pretrained": ("pretrained",),
}
"""The lines and points of panel b by their name, each with the families that it joins."""

CONSTRUCTIONS = ("product", "copied")
"""The families whose networks differ in their rank alone."""

JUDGED = 4
"""The low rank that the headline compares with full rank."""

HIGH = 0.7
"""Accuracy from which on the marks of panel a leave no room for text above them."""

LARGE_MARK = 13
"""Size of the two marks that the headline compares, in points."""


def _name(family: str) -> Name:
    return name_of(NAMES["family"], family)


def _look(family: str) -> Look:
    return _name(family).look or own_look("family", family)


def _line(axes: Axes, rows: pd.DataFrame, name: str, x: str) -> Iterator[End]:
    """Draw the accuracies of networks against their median x, as one line; yield its end.

    name: the family whose name and look the line has. If all points have the same r, to two
    decimals, r is written at the end, too.
    """
    if rows.empty:
        return
    look, text = _look(name), _name(name).drawn
    measures = list(dict.fromkeys([x, "train_accuracy", "rank_bound"]))
    points = rows.groupby(ARM)[measures].median().sort_values([x, *ARM])
    at_x = rows.set_index(ARM)[[]].join(points[x])[x]
    look.each(axes, at_x, rows.set_index(ARM)["train_accuracy"], alpha=0.3)
    look.line(axes, points[x], points["train_accuracy"])
    last = points["train_accuracy"].iloc[-1]
    of_r = sorted({f"r {r:.2f}" for r in points["rank_bound"]})
    numbers = (of_r if len(of_r) == 1 else []) + [f"{last:.2f}"] * (len(points) == 1)
    yield last, f"{text},\n{': '.join(numbers)}" if numbers else text, look


def full_minus_low(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the accuracy at full rank minus that at rank 4, by construction.

    Each value has an entry for each replicate. Constructions without both ranks are excluded.
    """
    differs = {}
    for family in CONSTRUCTIONS:
        by_level = rows[rows["family"] == family].pivot(
            index="replicate", columns="level", values="train_accuracy"
        )
        if JUDGED in by_level and by_level.columns.max() > JUDGED:
            differs[family] = by_level[by_level.columns.max()] - by_level[JUDGED]
    return differs


def least_equal(rows: pd.DataFrame) -> str:
    """Return the construction in which the medians of these differences are farthest from zero.

    Raises NoRows if no construction has both ranks.
    """
    differs = full_minus_low(rows)
    nonempty(pd.Series([*differs]), f"constructions of rank {JUDGED} and of full rank")
    return max(differs, key=lambda family: abs(differs[family].median()))


def _compared(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the two networks that the headline compares with large marks, and their accuracies."""
    family = least_equal(rows)
    rows, look = of_family(rows, family), _look(family)
    points = rows.groupby("level")["train_accuracy"].median()
    full = points.index.max()
    for k, other in ((JUDGED, full), (full, JUDGED)):
        of_rank = rows.loc[rows["level"] == k, "train_accuracy"]
        look.each(axes, [k] * len(of_rank), of_rank, alpha=0.8)
        look.line(axes, [k], [points[k]], markersize=LARGE_MARK)
        text = f"{'full rank' if k == full else f'rank {k:g}'}: {points[k]:.2f}"
        side, inwards = ("right", -7) if k == full else ("left", 7)
        above = 16 if points[k] > points[other] else -16
        away: dict = {"textcoords": "offset points", "xytext": (inwards, above)}
        look.name(axes, k, points[k], text, ha=side, **away)


def _differences(axes: Axes, rows: pd.DataFrame) -> None:
    """Write the accuracy at full rank minus the accuracy at rank 4, which the claim judges.

    There is a line for each construction, with the median and the range of the replicates. The
    lines are at the top, or in the lower half if the accuracies are high.
    """
    words = [f"full rank minus rank {JUDGED}, median", f"and range (as well: within ±{MARGIN:g}):"]
    lines = [(PLAIN, text) for text in words]
    for family, differs in full_minus_low(rows).items():
        low, middle, high = (
            f"{differs.quantile(part):.2f}".replace("-", "−") for part in (0, 0.5, 1)
        )
        lines.append((_look(family), f"{_name(family).printed} {middle} ({low} to {high})"))
    if len(lines) > len(words):
        top = 0.98 if rows["train_accuracy"].median() < HIGH else 0.5
        for number, (look, text) in enumerate(lines):
            look.note(axes, 0.03, top - 0.05 * number, text)


def _flipped(axes: Axes, rows: pd.DataFrame, x: float) -> Iterator[End]:
    """Draw positive weights with some signs flipped above each other at x; yield their names.

    Without flipped signs they are the copied units of full rank, which are drawn already.
    """
    look, rows = _look("flipped"), rows[(rows["family"] == "flipped") & (rows["level"] > 0)]
    for part, of_part in rows.groupby("level"):
        look.each(axes, [x] * len(of_part), of_part["train_accuracy"], alpha=0.3)
        y = of_part["train_accuracy"].median()
        look.line(axes, [x], [y])
        yield y, f"{100 * part:g} % flipped", look


def _by_rank(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw panel a: accuracy against the rank k of the last weights, all layers of size 1."""
    full = rows.loc[rows["family"].isin(CONSTRUCTIONS), "level"].max()
    full = full if full > 0 else rows["rank"].max()
    shown = rows[rows["family"].isin([*CONSTRUCTIONS, "signed"])]
    shown = nonempty(shown, "networks of size 1")
    shown = shown.assign(k=shown["level"].mask(shown["family"] == "signed", full))
    axes.set_xlim(0.7, 2.6 * full)
    ends = [*_flipped(axes, rows, 1.8 * full)]
    for family in (*CONSTRUCTIONS, "signed"):
        ends += _line(axes, shown[shown["family"] == family], family, "k")
    with suppress(NoRows):
        _compared(axes, shown)
    _differences(axes, shown)
    low = [2**power for power in range(12) if 2**power <= full / 2]
    ticks(axes.xaxis, [*low, full], [*map(str, low), "full"])
    name_ends(axes, ends)


def _by_size(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw panel b: accuracy against the size of the last hidden layer, at full rank."""
    ends = []
    for name, families in AT_FULL_RANK.items():
        ends += _line(axes, rows[rows["family"].isin(families)], name, "size")
    falling = rows[rows["family"] == "unscaled"]
    if falling.size:
        x, y, r = falling[["size", "train_accuracy", "rank_bound"]].median()
        _look("unscaled").line(axes, [x], [y], linestyle="")
        away: dict = {"textcoords": "offset points", "xytext": (9, 16)}
        text = f"{_name('unscaled').drawn},\nr {r:.2f}: {y:.2f}"
        _look("unscaled").name(axes, x, y, text, ha="left", **away)
    nonempty(pd.Series(ends, dtype=object), "networks of several sizes")
    low, high = axes.get_xlim()
    axes.set_xlim(low / 2, 2 * high)
    PLAIN.note(axes, 0.03, 0.98, "r: lower bound of the rank")
    name_ends(axes, ends)


def draw_rank_or_size(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the accuracy against the rank at size 1, and against the size at full rank.

    Returns the picture, and a table with median and range of each initialization. Raises NoRows
    without networks.
    """
    rows = networks(tables)
    picture, ((left, right),) = sheet(1, 2, height=4.8, gap=1.6, right=1.3)
    for axes, draw, at in ((left, _by_rank, 0.15), (right, _by_size, 0.5)):
        axes.set(xscale="log", ylim=(0, 1.03))
        level(axes, chance_level(tables), "chance", at=at, above=False)
        with or_empty(axes):
            draw(axes, rows)
    panel(left, "a", "training accuracy, size 1", "rank k of the last weights")
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

    The ranks are those of the construction in which they differ most. says: a value of RANK_4.
    Raises NoRows if a network was not run.
    """
    family = least_equal(networks(tables))
    few, full = (f"{middle(tables, family, rank):.2f}" for rank in (JUDGED, None))
    return says.format(
        pair=f"{_name(family).printed}: {few} and {full}",
        signed=f"{middle(tables, 'signed'):.2f}",
    )


RANK_4 = {
    "holds": "At size 1, rank 4 learns as well as full rank ({pair}); random signs reach {signed}",
    "fails": "At size 1, rank 4 and full rank learn differently ({pair}); random signs reach"
    " {signed}",
    "undecided": "At size 1 it is undecided whether rank 4 learns as well as full rank ({pair})",
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
        "(a) shows the training accuracy in the last epoch against the rank k of the last weights."
        " These weights are a product A B of positive matrices of rank k, or positive weights above"
        " k copied units; at full rank k is the width. Triangles to the right have positive weights"
        " of full rank with some signs flipped, networks with random signs usual Glorot weights."
        " The activations of every layer have root mean square 1 (size 1). The claim judges the"
        " difference between full rank and rank 4 of both constructions. (b) shows the training"
        " accuracy against the size of the last hidden layer. The line joins networks with random"
        " signs and zero biases whose layers all have this size; in networks with hollow marks, the"
        " size falls from layer to layer. The figure's table has the measured rank and r, and the"
        " other networks: a rate for each layer, default biases, pixels × 255, pre-trained or"
        " random at other sizes. Marks are medians,"
        " dots networks. Each network has the best of several learning rates, which other"
        " replicates chose."
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
