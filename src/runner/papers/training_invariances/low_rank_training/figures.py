"""Draw the figures of study `low_rank_training`, and the preview of one run.

W is the weight matrix of the last layer before the output layer. σ² are its squared singular
values, and their sum is ‖W‖². The remainder is the sum of all σ² except the k largest (k = 1 for
two classes). The gain is the size of the initial weights, 1 for the usual initialization.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.core.choices import Datasets
from runner.papers.training_invariances.looks import METHODS
from runner.papers.training_invariances.low_rank_training.tables import (
    by_decay,
    by_gain,
    ends,
    last,
    last_inner,
    steady,
    with_loss,
)
from runner.papers.training_invariances.panels import panels_in_pairs, ticks_within
from runner.results.drawing import Drawing, Finding
from runner.results.rows import NoRows, Tables, nonempty
from runner.results.style import (
    BLUE,
    NAVY,
    QUIET,
    SKY,
    Look,
    guide,
    level,
    name_ends,
    panel,
    rail,
    shades,
    sheet,
    ticks,
)

KINDS = {
    "as in a": "classes == 2 and loss_function == 'logistic' and method == 'gradient descent'"
    " and architecture == 'mlp'",
    "SGD": "method == 'SGD'",
    "exponential loss": "loss_function == 'exponential'",
    "squared loss": "loss_function == 'squared'",
    "convolutions": "architecture == 'conv'",
    "ten classes": "classes > 2",
}
"""Rows of panel (b) of `low-rank-training`, with the condition on their networks."""

SPREAD = ["median", "min", "max"]


def _spread(rows: pd.DataFrame, keys: list[str], column: str) -> pd.DataFrame:
    """Return median, smallest and largest value of a column for each combination of the keys."""
    return rows.groupby(keys)[column].agg(SPREAD).reset_index()


def _bars(axes: Axes, x: pd.Series, rows: pd.DataFrame, look: Look, **options) -> None:
    """Draw medians with the range of the networks.

    The medians are joined unless linestyle is "none".
    """
    axes.vlines(x, rows["min"], rows["max"], look.color, linewidth=1.0, zorder=2)
    look.line(axes, x, rows["median"], **{"markersize": 6} | options)


def of_one_dataset(tables: Tables) -> Tables:
    """Return the tables with only the rows of the dataset that is drawn, as in `tables.steady`."""
    return {
        name: rows[rows["data"] == rows["data"].min()] if "data" in rows else rows
        for name, rows in tables.items()
    }


def two_classes(tables: Tables) -> pd.DataFrame:
    """Return the layers of `tables.by_gain` for two classes.

    They are the last layers before the output layer, of MLPs under gradient descent. Raises NoRows
    if there are no such networks.
    """
    return nonempty(by_gain(tables).query("classes == 2"), "networks for two classes")


def say_gain_one(tables: Tables) -> str:
    """Return the headline of figure `low-rank-training`, with two percentages.

    They are the largest σ² in percent of the sum of all σ², before and after training. σ² are the
    squared singular values of the last inner layer. The numbers are medians over networks for two
    classes with usual initial weights. Raises NoRows if there are none.
    """
    rows = nonempty(two_classes(tables).query("gain == 1"), "gain one")
    before, after = (
        100 * records["ratio"].median() for records in (rows[rows["epoch"] == 0], ends(rows))
    )
    return (
        "With usual weights gradient descent finds no low rank: the largest σ² has"
        f" {before:.0f} %, then {after:.0f} % of the sum"
    )


def draw_without_decay(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `low-rank-training`: singular values of a layer without weight decay.

    σ² are the squared singular values of the last layer before the output layer.

    - (a) the largest σ² divided by the sum of all σ², by epoch.
    - (b) the same ratio for other networks and losses, before and after training.

    Returns the picture, and the drawn numbers of both panels with the column `panel`.
    """
    parts = [
        (_ratio_by_epoch, "largest σ² / sum of all σ²", "epoch"),
        (_ratio_by_kind, "○ before, ● after training", "largest σ² / sum of all σ²"),
    ]
    return panels_in_pairs(tables, parts, height=4.4, gap=2.45, left=0.65, right=0.3)


def _gains(rows: pd.DataFrame) -> dict[float, str]:
    return shades(sorted(set(rows["gain"])), SKY, BLUE, NAVY)


def _by_epoch(axes: Axes, drawn: pd.DataFrame) -> None:
    """Draw one line for each gain, with its name at the end; the line of the usual gain is wide.

    drawn: a row for each gain and epoch.
    """
    colors, names = _gains(drawn), []
    axes.set_xscale("log")
    for gain, line in drawn[drawn["epoch"] > 0].groupby("gain"):
        look = Look(colors[gain], "", width=6.0 if gain == 1 else 1.8)
        look.line(axes, line["epoch"], line["median"], zorder=1.9 if gain == 1 else 2)
        first, last = drawn.loc[drawn["gain"] == gain, "median"].iloc[[0, -1]]
        text = f"gain {gain:g}"
        text += f" (usual):\n{100 * first:.0f} %, then {100 * last:.0f} %" if gain == 1 else ""
        names.append((line["median"].iloc[-1], text, look))
    axes.set_xlim(1, max(2, drawn["epoch"].max()))
    ticks_within(axes.xaxis, 1, 10, 100, 1000, 10000)
    name_ends(axes, names)


def _ratio_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw largest squared singular value / squared norm by epoch, one line for each gain."""
    drawn = _spread(two_classes(tables), ["gain", "epoch"], "ratio")
    axes.set_ylim(0, 1.02)
    level(axes, 1, "rank one", above=False)
    _by_epoch(axes, drawn)
    note = (
        "σ: singular values of the last\ninner layer; gain: initial size\nof weights / usual size"
    )
    QUIET.note(axes, 0.03, 0.9, note, va="top")
    return drawn


def _ratio_by_kind(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw the ratio: one row for each kind of network and loss, one point for each gain."""
    rows = last_inner(tables).query("dtype == 'float32' and weight_decay == 0")
    rows = rows[rows["width"] == by_gain(tables)["width"].iloc[0]]
    drawn, colors = [], _gains(rows)
    aside = dict(zip(colors, np.linspace(0.24, -0.24, len(colors)), strict=True))
    for is_after, at in ((False, rows[rows["epoch"] == 0]), (True, ends(rows))):
        for number, (name, choose) in enumerate(KINDS.items()):
            line = _spread(at.query(choose), ["gain"], "ratio")
            for point in line.itertuples():
                look, y = Look(colors[point.gain], hollow=not is_after), number + aside[point.gain]
                if is_after:
                    axes.hlines(y, point.min, point.max, look.color, linewidth=1.4, zorder=2.5)
                look.line(axes, point.median, y, markersize=6 if is_after else 4.5)
            drawn.append(line.assign(series=name, after=is_after))
    axes.set(xlim=(0, 1.02), ylim=(len(KINDS) - 0.5, -0.75))
    names = [*KINDS][:-1] + ["ten classes,\nnine largest"]
    axes.set_yticks(range(len(KINDS)), [name.replace(" loss", "\nloss") for name in names])
    QUIET.note(axes, 0.98, 0.97, "color: gain, as in a; bar: range", ha="right")
    return pd.concat(drawn)


def say_decay(tables: Tables) -> str:
    """Return the headline of figure `beyond-gradient-flow`: how optimizers change the remainder.

    It says that under weight decay SGD and momentum shrink the small singular values like gradient
    flow, and Adam shrinks them far more. Raises NoRows unless Adam shrinks the sum of their squares
    ten times more in every network.
    """
    rows = by_decay(steady(tables))
    adam = nonempty(rows.query("method == 'Adam'"), "Adam with weight decay")
    if (adam["decayed"] > 0.1 * np.exp(-adam["exponent"])).any():
        raise NoRows("Adam does not shrink the remainder ten times more than gradient flow")
    return (
        "Under weight decay SGD and momentum shrink the small singular values as gradient flow"
        " does; Adam shrinks them far more"
    )


def draw_beyond_the_flow(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `beyond-gradient-flow`: what optimizers change under weight decay.

    The y-axis has the sum of all squared singular values but the largest, divided by the sum
    without weight decay. The x-axis has 2 × decay λ × time T. Returns the picture, and the drawn
    numbers.
    """
    picture, ((axes,),) = sheet(1, 1, height=4.2, left=0.8, right=2.35)
    drawn = _against_decay(axes, tables)
    title = "sum of all σ² but the largest, with decay / without, last inner layer"
    panel(axes, "", title, "2 × decay λ × training time T")
    return picture, drawn


SMALLEST = 3e-4
"""Smallest ratio on the axis; smaller ones are drawn as zero."""


NESTED = {"SGD": 14, "AdamW": 11, "momentum": 6}
"""Marker sizes of methods that overlap; large markers are hollow."""


def _against_decay(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw remainder with weight decay / remainder without it, and exp(-2 lambda T)."""
    rows = last(by_decay(steady(tables)))
    drawn = _spread(rows, ["method", "classes", "exponent"], "decayed")
    shown = drawn[drawn["classes"] == drawn["classes"].min()]
    position = rail(axes, SMALLEST, 1.7, f"below\n{SMALLEST:g}")
    ends_at = shown["exponent"].min() / 2, 1.5 * shown["exponent"].max()
    x = np.geomspace(*ends_at) if ends_at[0] > 0 else np.ones(1)
    guide(axes, x, np.exp(-x))
    axes.set(xscale="log", xlim=ends_at)
    for method, of_method in shown.groupby("method"):
        of_method = of_method.assign(**{name: position(of_method[name]) for name in SPREAD})
        look = METHODS[method]
        form: dict[str, Any] = {"linestyle": "", "markersize": NESTED.get(method, 6)}
        if form["markersize"] > 6:
            form |= {"markerfacecolor": "none", "markeredgewidth": 1.5}
            form |= {"markeredgecolor": look.color}
        _bars(axes, of_method["exponent"], of_method, look, label=method, **form)
    QUIET.line(axes, [], [], label="gradient flow,\nexp(−2λT)")
    QUIET.line(axes, [], [], linestyle="", label="σ: singular values")
    names = axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.55))
    for text in names.get_texts():
        text.set_color(METHODS[text.get_text()].ink if text.get_text() in METHODS else QUIET.ink)
    ticks(axes.yaxis, [0.001, 0.01, 0.1, 1])
    ticks_within(axes.xaxis, 0.01, 0.1, 1, 10)
    return drawn


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run: low rank of a layer against the falling training loss.

    The y-axis has the sum of the k largest squared singular values, divided by the sum of all. They
    are those of the last layer before the output layer. A line is the median over networks with
    equal gain, learning rate and weight decay. Returns the picture, and a table with medians at the
    last epoch.
    """
    keys = ["gain", "learning_rate", "weight_decay"]
    rows = with_loss(tables)
    colors, names = _gains(rows), []
    picture, ((axes,),) = sheet(1, 1, height=3.6, right=1.95)
    axes.set_xscale("log")
    for values, group in rows.groupby(keys):
        line, look = group.groupby("epoch")[["loss", "ratio"]].median(), Look(colors[values[0]])
        look.line(axes, line["loss"], line["ratio"])
        text = "gain {:g}, rate {:g},\ndecay {:g}".format(*values)
        names.append((line["ratio"].iloc[-1], text, look))
    axes.invert_xaxis()
    name_ends(axes, names)
    title = "leading σ² / sum of all σ², last inner layer, median of networks"
    panel(axes, "", title, "training loss, falling →")
    summary = ["ratio", "remainder", "lower", "upper", "drift", "loss"]
    return picture, ends(rows).groupby(keys)[summary].median().reset_index()


TITLE = "low rank of the last inner layer as the loss falls"

CAPTION = (
    "Lines are the k leading squared singular values of the last inner layer, divided by the sum"
    " of all, as the training loss falls. They are medians of the networks with equal gain,"
    " learning rate and weight decay."
)
"""Title and caption of the preview."""

DRAWN_BY = ("method",)

HEADLINE = ["loss", "accuracy", "test_accuracy", "sharpness"]

FIGURES = [
    Drawing(
        "low-rank-training",
        draw_without_decay,
        whose="our experiment",
        findings=[Finding(say_gain_one, holds=["band"])],
        marks="lines and marks: medians, bars: range",
        caption="(a) shows the largest squared singular value σ² of the last inner layer, divided"
        " by the sum of all σ², by epoch for weights of several initial sizes (gain: initial size"
        " divided by the usual one). (b) shows this ratio for other networks and losses, with"
        " bars from the smallest to the largest network; for ten classes it is the sum of the"
        " nine largest σ². Diverged networks are excluded. The figure's claim compares the sum of"
        " all other σ² with bounds that are known before training.",
        shows={"data": Datasets(("digits", "fashion_mnist"))},
        selects=of_one_dataset,
    ),
    Drawing(
        "beyond-gradient-flow",
        draw_beyond_the_flow,
        whose="our experiment, beyond the paper",
        findings=[Finding(say_decay, holds=["decay"])],
        marks="marks: medians, bars: range",
        caption="The remainder of the last inner layer is the sum of all its squared singular"
        " values but the largest. It is shown divided by the remainder at weight decay λ = 0,"
        " against 2λT (T: training time). Marks are medians, bars the range; ratios below"
        f" {SMALLEST:g} are at the bottom. Diverged networks are excluded.",
        shows={
            "data": Datasets(("digits", "fashion_mnist")),
            "optimizer": ["sgd", "momentum", "adam", "adamw"],
        },
        selects=of_one_dataset,
    ),
]
