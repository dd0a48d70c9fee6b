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

from runner.papers.training_invariances.looks import METHODS, SQUARES
from runner.papers.training_invariances.low_rank_training.tables import (
    by_decay,
    by_gain,
    by_rate,
    by_width,
    ends,
    last,
    last_inner,
    over_start,
    steady,
    ten_class_spectra,
    with_loss,
)
from runner.papers.training_invariances.panels import four_panels, ticks_within
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.evidence import slopes
from runner.results.rows import NoRows, Tables, nonempty
from runner.results.style import (
    BLUE,
    DASHED,
    GREY,
    NAVY,
    QUIET,
    SKY,
    SMALL,
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
"""Rows of panel (c) of `low-rank-training`, with the condition on their networks."""

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
    """Return the layers of `tables.by_gain` for two classes, with a new column `kept`.

    They are the last layers before the output layer, of MLPs under gradient descent. `kept` is the
    remainder divided by its value before training. The remainder is the sum of all squared singular
    values except the largest. Raises NoRows if there are no such networks.
    """
    rows = nonempty(by_gain(tables).query("classes == 2"), "networks for two classes")
    return rows.assign(kept=over_start(rows, "remainder"))


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
        "Training from weights of usual size leads to no low rank: the largest σ² is"
        f" {before:.0f} % of ‖W‖² before and {after:.0f} % after"
    )


def draw_without_decay(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `low-rank-training`: singular values of a layer without weight decay.

    σ² are the squared singular values of the last layer before the output layer.

    - (a) the largest σ² divided by the sum of all σ², by epoch.
    - (b) the sum of all other σ² and its bounds, by epoch.
    - (c) the ratio of (a) for other networks and losses, before and after training.
    - (d) σ² after training, by width.

    Returns the picture, and the drawn numbers of all panels with the column `panel`.
    """
    parts = [
        (_ratio_by_epoch, "last inner layer: largest σ² / sum", "epoch"),
        (_remainder_by_epoch, "sum of all other σ² / initial sum", "epoch"),
        (_ratio_by_kind, "other networks: ○ before, ● after", "leading σ² / sum of all σ²"),
        (_by_width, f"σ² after training{_gain_of_widths(tables)}", "width"),
    ]
    return four_panels(tables, parts, height=7.6, gap=1.6, left=1.1, right=1.35)


def _gain_of_widths(tables: Tables) -> str:
    """Return as text the gain of the networks that panel (d) draws, in brackets.

    The text is empty if there are no such networks.
    """
    try:
        gains = sorted(set(by_width(tables)["gain"]))
    except NoRows:
        return ""
    return f" (gain {', '.join(f'{gain:g}' for gain in gains)})"


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
        text = f"gain {gain:g}" + (" (usual)" if gain == 1 else "")
        names.append((line["median"].iloc[-1], text, look))
    axes.set_xlim(1, max(2, drawn["epoch"].max()))
    ticks_within(axes.xaxis, 1, 10, 100, 1000, 10000)
    name_ends(axes, names)


def _ratio_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw largest squared singular value / squared norm by epoch, one line for each gain."""
    drawn = _spread(two_classes(tables), ["gain", "epoch"], "ratio")
    axes.set_ylim(0, 1.02)
    level(axes, 1, "rank one", above=False)
    usual = (100 * drawn[drawn["gain"] == 1].set_index("epoch")["median"]).sort_index()
    _by_epoch(axes, drawn)
    note = "gain: initial size / usual size\nσ: singular values of the layer"
    if len(usual):
        note += f"\ngain 1: {usual.iloc[0]:.0f} % before, {usual.iloc[-1]:.0f} % after"
    QUIET.note(axes, 0.03, 0.86, note, va="top")
    return drawn


def _remainder_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw remainder / initial remainder by epoch, with the bounds from the invariants."""
    rows = two_classes(tables)
    drawn = _spread(rows, ["gain", "epoch"], "kept")
    # In units of the initial remainder the bounds are the same for all gains.
    start = rows[rows["epoch"] == 0]
    bounds = start[["lower", "upper"]].div(start["remainder"], axis=0).median()
    shown = drawn["median"].tolist()
    if bounds["lower"] > 0:
        shown += bounds.tolist()
        axes.axhspan(bounds["lower"], bounds["upper"], color=BLUE, alpha=0.12, lw=0)
        text = "between the bounds that are\nknown before training"
        layout = {"xycoords": ("axes fraction", "data"), "va": "bottom", "ha": "left"}
        Look(BLUE).name(axes, 0.03, bounds["upper"], text, size=SMALL, **layout)
    room = 0.25 * (max(shown) - min(shown))
    axes.set_ylim(min(shown) - room, max(shown) + 2 * room)
    axes.yaxis.get_major_locator().set_params(nbins=6, steps=[1, 2, 5, 10])
    axes.yaxis.set_major_formatter("{x:g}")
    _by_epoch(axes, drawn)
    return drawn.assign(**bounds)


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
    names = [*KINDS][:-1] + ["ten classes,\nnine leading"]
    axes.set_yticks(range(len(KINDS)), [name.replace(" loss", "\nloss") for name in names])
    QUIET.note(axes, 0.98, 0.97, "color: gain, as in a; bar: range", ha="right")
    return pd.concat(drawn)


def _by_width(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw the largest squared singular value, and the sum of all others, against the width."""
    rows = by_width(tables)
    drawn, names = [], []
    axes.set(xscale="log", yscale="log")
    for column, name in (("remainder", "sum of\nall others"), ("top", "largest")):
        line = _spread(rows, ["width"], column)
        exponent = slopes(rows, "width", column, log=True).median()
        _bars(axes, line["width"], line, SQUARES[column])
        power = f"{exponent:z.2f}".replace("-", "−")
        names.append((line["median"].iloc[-1], f"{name}:\npower {power}", SQUARES[column]))
        drawn.append(line.assign(series=column, exponent=exponent))
    ticks(axes.xaxis, sorted(set(rows["width"])))
    ticks_within(axes.yaxis, 1, 2, 5, 10, 20, 50, 100, 200, 500)
    name_ends(axes, names)
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
    """Draw figure `beyond-gradient-flow`: what other optimizers and weight decay change.

    - (a) the sum of all squared singular values but the largest, divided by the sum without weight
      decay. The x-axis has 2 × decay λ × time T.
    - (b) the change of D = W₂ᵀW₂ − W₁W₁ᵀ of adjacent layers, by learning rate.
    - (c) the singular values for ten classes.

    Returns the picture, and the drawn numbers of all panels with the column `panel`.
    """
    picture, (panels,) = sheet(1, 3, height=4.2, left=0.8, right=0.2, gap=0.8, top=0.65)
    parts = [
        (
            _against_decay,
            "last inner layer: all σ²\nbut the largest: decay / none",
            "2 × decay λ × time T",
        ),
        (_drift_by_rate, "no decay: change of D\n/ initial size of D", "learning rate"),
        (_spectra, "last inner layer: σ", "index (ten classes)"),
    ]
    drawn = [pd.DataFrame({"panel": []})]
    for letter, axes, (part, title, x) in zip("abc", panels, parts, strict=True):
        with or_empty(axes):
            drawn.append(part(axes, tables).assign(panel=part.__name__.strip("_")))
        panel(axes, letter, title, x)
    return picture, pd.concat(drawn)


SMALLEST = 3e-4
"""Smallest ratio on the axis of panel (a); smaller ones are drawn as zero."""


NESTED = {"SGD": 14, "AdamW": 11, "momentum": 6}
"""Marker sizes of methods that overlap; large markers are hollow."""


def _against_decay(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw remainder with weight decay / remainder without it, and exp(-2 lambda T)."""
    rows = last(by_decay(steady(tables)))
    drawn = _spread(rows, ["method", "classes", "exponent"], "decayed")
    shown = drawn[drawn["classes"] == drawn["classes"].min()]
    position = rail(axes, SMALLEST, 1.7)
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
    names = axes.legend(loc="lower left", bbox_to_anchor=(0, 0.13), fontsize=SMALL)
    for text in names.get_texts():
        text.set_color(METHODS[text.get_text()].ink if text.get_text() in METHODS else QUIET.ink)
    ticks(axes.yaxis, [0.001, 0.01, 0.1, 1])
    ticks_within(axes.xaxis, 0.01, 0.1, 1, 10)
    return drawn


def _drift_by_rate(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw the change of D / its initial size, one named line for each optimizer."""
    rows = by_rate(tables)
    rows = rows.assign(relative=rows["drift"] / rows["initial_invariant"])
    drawn = _spread(rows, ["method", "learning_rate", "time"], "relative")
    axes.set(xscale="log", yscale="log")
    rates = drawn["learning_rate"]
    axes.set_xlim(rates.min() / 2, rates.max() * 2)
    axes.set_ylim(drawn["min"].min() / 4, max(2.0, drawn["max"].max() * 2))
    for method, line in drawn.groupby("method"):
        _bars(axes, line["learning_rate"], line, METHODS[method], linewidth=1.2, markersize=5)
        at = line.iloc[-1]
        right = at["learning_rate"] > (rates.min() * rates.max()) ** 0.5
        side = {"xytext": (6, 15), "ha": "right"} if right else {"xytext": (9, -2), "ha": "left"}
        options = {"textcoords": "offset points", "size": SMALL} | side
        METHODS[method].name(axes, at["learning_rate"], at["median"], method, **options)
    QUIET.note(axes, 0.03, 0.02, "D = W₂ᵀW₂ − W₁W₁ᵀ", va="bottom")
    powers = [10.0**power for power in range(-6, 1)]
    low, high = sorted(axes.get_ylim())
    shown = [power for power in powers if low <= power <= high]
    ticks(axes.yaxis, shown, [f"{100 * power:g} %" for power in shown])
    return drawn


WITHOUT_DECAY = Look(GREY, "o", DASHED, hollow=True)
"""Look of SGD without weight decay."""


def _spectra(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw the singular values of ten classes, with and without weight decay."""
    drawn = _spread(ten_class_spectra(tables), ["weight_decay", "index"], "singular_value")
    for number, (decay, line) in enumerate(reversed([*drawn.groupby("weight_decay")])):
        look = METHODS["SGD"] if decay else WITHOUT_DECAY
        _bars(axes, line["index"], line, look, markersize=4)
        text, height = f"SGD, λ = {decay:g}" if decay else "SGD, no decay", 0.84 + 0.09 * number
        look.line(axes, [0.22, 0.34], [height] * 2, transform=axes.transAxes, markersize=4)
        look.note(axes, 0.39, height, text)
    axes.set_ylim(bottom=0)
    ticks_within(axes.xaxis, 1, 5, 10, 15, 20, 30, 40)
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
        caption="(a) shows the ratio ‖W‖₂² / ‖W‖² of the last inner layer by epoch, for four"
        " gains, (b) the remainder ‖W‖² − ‖W‖₂². (c) shows the ratio for other"
        " networks and losses; ten classes: nine leading values. (d) shows the largest"
        " σ² and the sum of all others by width. Diverged networks are excluded.",
        shows={"data": ["digits", "fashion_mnist"]},
        selects=of_one_dataset,
    ),
    Drawing(
        "beyond-gradient-flow",
        draw_beyond_the_flow,
        whose="our experiment, beyond the paper",
        findings=[Finding(say_decay, holds=["decay"])],
        marks="marks: medians, bars: range",
        caption="(a) shows the remainder ‖W‖² − ‖W‖₂² of the last inner layer, divided by the"
        f" remainder at weight decay λ = 0, against 2λT (T: time; ≈ 0: below {SMALLEST:g})."
        " (b) shows the change of D of adjacent layers / D's initial size,"
        " by learning rate. (c) shows singular values for ten classes."
        " Diverged networks are excluded.",
        shows={
            "data": ["digits", "fashion_mnist"],
            "optimizer": ["sgd", "momentum", "adam", "adamw"],
        },
        selects=of_one_dataset,
    ),
]
