"""Drawings of study `low_rank_training`."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.training_invariances.looks import CLASSES, METHODS, SQUARES
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
from runner.results.claims import Tables
from runner.results.evidence import slopes
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.rows import nonempty
from runner.results.style import (
    BLUE,
    GREY,
    NAVY,
    SKY,
    SMALL,
    Look,
    guide,
    name_ends,
    panel,
    rail,
    shades,
    sheet,
    ticks,
)

KINDS = {
    "two classes": "classes == 2 and loss_function == 'logistic' and method == 'gradient descent'"
    " and architecture == 'mlp'",
    "SGD": "method == 'SGD'",
    "exponential loss": "loss_function == 'exponential'",
    "squared loss": "loss_function == 'squared'",
    "convolutions": "architecture == 'conv'",
    "ten classes": "classes > 2",
}
"""The rows of panel (c) of `low-rank-training`."""

SPREAD = ["median", "min", "max"]


def _spread(rows: pd.DataFrame, keys: list[str], column: str) -> pd.DataFrame:
    """Median and range over replicates."""
    return rows.groupby(keys)[column].agg(SPREAD).reset_index()


def _bars(axes: Axes, x: pd.Series, rows: pd.DataFrame, look: Look, **options) -> None:
    """Medians, joined unless linestyle is "none", with the range of the replicates."""
    axes.vlines(x, rows["min"], rows["max"], look.color, linewidth=1.0, zorder=2)
    look.line(axes, x, rows["median"], **{"markersize": 6} | options)


def say_gain_one(tables: Tables) -> str:
    """Say the share at gain one, at the start and at the end, and that the remainder stays."""
    rows = nonempty(by_gain(tables).query("classes == 2 and gain == 1"), "gain one")
    end = ends(rows.assign(kept=over_start(rows, "remainder")))
    return (
        "Training as usual does not end at low rank: at gain one the largest singular value ends"
        f" at {100 * end['ratio'].median():.0f} % of ‖W‖², and the others keep their size"
        f" ({100 * end['kept'].median():.0f} %)"
    )


def draw_without_decay(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the ratio by epoch, the remainder and its bounds, by gain, by width."""
    parts = [
        (_ratio_by_epoch, "share of the k largest in ‖W‖²", "epoch"),
        (_remainder_by_epoch, "all others, over their start", "epoch"),
        (_ratio_by_kind, "the same at the end, by gain", "share of the k largest in ‖W‖²"),
        (_by_width, "squared singular values", "width"),
    ]
    return four_panels(tables, parts, height=7.6, gap=1.5, left=1.1, right=1.15)


def _gains(rows: pd.DataFrame) -> dict[float, str]:
    return shades(sorted(set(rows["gain"])), SKY, BLUE, NAVY)


def _by_epoch(axes: Axes, drawn: pd.DataFrame) -> None:
    """A line for each number of classes and gain, named at the end for the gain alone."""
    colors, names = _gains(drawn), []
    axes.set_xscale("log")
    for (classes, gain), line in drawn[drawn["epoch"] > 0].groupby(["classes", "gain"]):
        look = Look(colors[gain], "", "-" if classes == 2 else (0, (2, 1.4)), 2.0)
        look.line(axes, line["epoch"], line["median"])
        if classes == drawn["classes"].min():
            names.append((line["median"].iloc[-1], f"gain {gain:g}", look))
    axes.set_xlim(1, max(2, drawn["epoch"].max()))
    ticks_within(axes.xaxis, 1, 10, 100, 1000, 10000)
    name_ends(axes, names)


def _ratio_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    """The largest squared singular value over the squared norm, a line for each gain."""
    rows = by_gain(tables)
    drawn = _spread(rows[rows["epoch"] > 0], ["classes", "gain", "epoch"], "ratio")
    axes.set_ylim(0, 1.02)
    _by_epoch(axes, drawn)
    if (drawn["classes"] > 2).any():
        place = {"transform": axes.transAxes, "ha": "left", "size": SMALL}
        Look(BLUE).name(axes, 0.03, 0.97, "dashed: ten classes", **place)
    return drawn


def _remainder_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    """What is not of the largest value, over its start, with the bounds by the invariants."""
    rows = by_gain(tables)
    rows = rows.assign(kept=over_start(rows, "remainder"))
    drawn = _spread(rows, ["classes", "gain", "epoch"], "kept")
    # In units of the remainder at the start the bounds are the same for all gains.
    start = rows[rows["epoch"] == 0]
    bounds = start[["lower", "upper"]].div(start["remainder"], axis=0)
    bounds = bounds.groupby(start["classes"]).median()
    axes.set_yscale("log")
    for classes, (low, high) in bounds[bounds["lower"] > 0].iterrows():
        look, text = CLASSES[classes == 2], "bounds" if classes == 2 else f"{classes} classes"
        axes.axhspan(low, high, color=look.color, alpha=0.08, lw=0)
        place = {"xycoords": ("axes fraction", "data"), "va": "top", "ha": "left"}
        look.name(axes, 0.03, high * 0.97, text, size=SMALL, **place)
    _by_epoch(axes, drawn)
    ticks_within(axes.yaxis, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5)
    return drawn.join(bounds, on="classes")


def _ratio_by_kind(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Return a row for each kind of network and loss, a point for each gain."""
    rows = ends(last_inner(tables)).query("dtype == 'float32' and weight_decay == 0")
    rows = rows[rows["width"] == by_gain(tables)["width"].iloc[0]]
    drawn, colors = [], _gains(rows)
    for number, (name, choose) in enumerate(KINDS.items()):
        line = _spread(rows.query(choose), ["gain"], "ratio")
        for each in line.itertuples():
            look = Look(colors[each.gain])
            axes.hlines(number, each.min, each.max, look.color, linewidth=1.4)
            look.line(axes, each.median, number)
        drawn.append(line.assign(series=name))
    axes.set(xlim=(0, 1.02), ylim=(len(KINDS) - 0.5, -0.5))
    axes.set_yticks(range(len(KINDS)), [name.replace(" ", "\n") for name in KINDS])
    return pd.concat(drawn)


def _by_width(axes: Axes, tables: Tables) -> pd.DataFrame:
    """The largest squared singular value and the sum of all others against the width."""
    rows = by_width(tables)
    drawn, names = [], []
    axes.set(xscale="log", yscale="log")
    for column, name in (("remainder", "all others"), ("top", "largest")):
        line = _spread(rows, ["width"], column)
        exponent = slopes(rows, "width", column, log=True).median()
        _bars(axes, line["width"], line, SQUARES[column])
        names.append((line["median"].iloc[-1], f"{name}:\npower {exponent:z.2f}", SQUARES[column]))
        drawn.append(line.assign(series=column, exponent=exponent))
    ticks(axes.xaxis, sorted(set(rows["width"])))
    ticks_within(axes.yaxis, 1, 2, 5, 10, 20, 50, 100, 200, 500)
    name_ends(axes, names)
    return pd.concat(drawn)


def say_law(tables: Tables) -> str:
    """Say how near SGD and momentum keep the law, and where Adam ends."""
    rows = by_decay(steady(tables))
    rows = rows.assign(law=rows["decayed"] * np.exp(rows["exponent"]))
    kept = nonempty(rows.query("method in ('SGD', 'momentum')"), "SGD with weight decay")["law"]
    adam = nonempty(rows.query("method == 'Adam'"), "Adam with weight decay")["decayed"]
    return (
        "SGD and momentum keep the law of gradient flow under weight decay (what is left /"
        f" exp(−2λT): {kept.min():.2f} to {kept.max():.2f}); Adam breaks it: at most"
        f" {adam.max():.0e} is left"
    )


def draw_beyond_the_flow(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Drift against rate, weight decay, ratio against loss, spectra of ten classes."""
    parts = [
        (_drift_by_rate, "drift of D / ‖D(0)‖", "learning rate"),
        (_against_decay, "remainder / without decay", "2λT"),
        (_ratio_by_loss, "share of σ₁² in ‖W‖²", "training loss, falling →"),
        (_spectra, "singular values of ten classes", "index"),
    ]
    return four_panels(tables, parts, height=7.6, gap=1.75, left=0.85, right=1.45)


def _drift_by_rate(axes: Axes, tables: Tables) -> pd.DataFrame:
    """How far D has moved, relative to its start; every optimizer has its name and time."""
    rows = by_rate(tables)
    rows = rows.assign(relative=rows["drift"] / rows["initial_invariant"])
    drawn = _spread(rows, ["method", "learning_rate", "time"], "relative")
    axes.set(xscale="log", yscale="log")
    names = []
    for method, line in drawn.groupby("method"):
        _bars(axes, line["learning_rate"], line, METHODS[method])
        name = method.replace(" ", "\n")
        text = f"{name},\nT = {line['time'].iloc[0]:.0f}"
        names.append((line["median"].iloc[-1], text, METHODS[method]))
    name_ends(axes, names)
    return drawn


def _against_decay(axes: Axes, tables: Tables) -> pd.DataFrame:
    """The remainder with weight decay over that without, next to the law exp(-2 lambda T)."""
    rows = last(by_decay(steady(tables)))
    drawn = _spread(rows, ["method", "classes", "exponent"], "decayed")
    shown = drawn[drawn["classes"] == drawn["classes"].min()]
    place = rail(axes, 3e-4, 1.7)
    x, names = np.linspace(0, max(0.1, shown["exponent"].max())), []
    guide(axes, x, np.exp(-x))
    for method, own in shown.groupby("method"):
        own = own.assign(**{name: place(own[name]) for name in SPREAD})
        _bars(axes, own["exponent"], own, METHODS[method], linestyle="")
        names.append((own["median"].iloc[-1], method, METHODS[method]))
    name_ends(axes, names)
    Look(GREY).name_at(axes, x, np.exp(-x), "e$^{−2λT}$", 0.36 * x[-1], (8, 8))
    ticks(axes.yaxis, [0.001, 0.01, 0.1, 1])
    return drawn


def _spectra(axes: Axes, tables: Tables) -> pd.DataFrame:
    """The singular values of ten classes, with and without weight decay."""
    drawn = _spread(ten_class_spectra(tables), ["weight_decay", "index"], "singular_value")
    names = []
    for decay, line in drawn.groupby("weight_decay"):
        look = METHODS["SGD"] if decay else METHODS["gradient descent"]
        _bars(axes, line["index"], line, look, markersize=4)
        text = f"decay {decay:g}" if decay else "no decay"
        names.append((line["median"].iloc[-1], text, look))
    axes.set_ylim(bottom=0)
    name_ends(axes, names)
    return drawn


def _ratio_by_loss(axes: Axes, tables: Tables) -> pd.DataFrame:
    """The share of the largest singular value while the training loss falls."""
    rows = with_loss(tables).query("classes == 2 and weight_decay == 0 and dtype == 'float32'")
    rows = nonempty(rows[rows["method"] != "AdamW"], "rows of two classes without decay")
    # AdamW without decay is Adam.
    rows = rows[rows["learning_rate"] == rows.groupby("method")["learning_rate"].transform("max")]
    drawn = rows.groupby(["method", "epoch"])[["loss", "ratio"]].median().reset_index()
    axes.set(xscale="log", ylim=(0, 1))
    for method, line in drawn.groupby("method"):
        METHODS[method].line(axes, line["loss"], line["ratio"], linewidth=1.6, markevery=[-1])
    axes.invert_xaxis()
    last = drawn.groupby("method")["ratio"].last()
    name_ends(axes, [(ratio, method, METHODS[method]) for method, ratio in last.items()])
    return drawn


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Preview of one run: the ratio of the last inner layer while the loss falls."""
    keys = ["gain", "learning_rate", "weight_decay"]
    rows = with_loss(tables)
    colors, names = _gains(rows), []
    picture, ((axes,),) = sheet(1, 1, height=3.6, right=1.7)
    axes.set_xscale("log")
    for values, of in rows.groupby(keys):
        line, look = of.groupby("epoch")[["loss", "ratio"]].median(), Look(colors[values[0]])
        look.line(axes, line["loss"], line["ratio"])
        names.append((line["ratio"].iloc[-1], ", ".join(f"{v:g}" for v in values), look))
    axes.invert_xaxis()
    name_ends(axes, names)
    panel(axes, "", "share of the k largest in ‖W‖²; gain, rate, decay", "training loss, falling →")
    summary = ["ratio", "remainder", "lower", "upper", "drift", "loss"]
    return picture, ends(rows).groupby(keys)[summary].median().reset_index()


HEADLINE = ["loss", "accuracy", "test_accuracy", "sharpness"]

FIGURES = [
    Drawing(
        "low-rank-training",
        draw_without_decay,
        whose="ours",
        findings=[Finding(say_gain_one, holds=["band"])],
        caption="Training as usual, the last inner layer for all of them. (a) The share that its k"
        " largest singular values have in its squared norm, k the number that the corollary names,"
        " by epoch, for several gains of the starting weights, the larger the darker; solid: two"
        " classes; dashed: ten. (b) What is left of the others, over its start; bands: the bounds"
        " that the invariants set, inner for two classes. (c) The share at the end for other"
        " networks and losses, a point for each gain, coloured as in a. (d) The largest value and"
        " what is left, squared, by width. Lines and points are medians over the replicates, bars"
        " their whole range. Networks that diverge are left out. Drawn: digits, where there are"
        " any.",
        shows={"data": ["digits", "fashion_mnist"]},
    ),
    Drawing(
        "beyond-gradient-flow",
        draw_beyond_the_flow,
        whose="ours, beyond the paper",
        findings=[Finding(say_law, holds=["decay"])],
        caption="Beyond gradient flow, the last inner layer for all of them. (a) Drift of the"
        " invariant D at one time T, over its start, against the rate. (b) What weight decay leaves"
        " of all singular values but the k largest, over the same without decay, against twice the"
        " decay times the time; dotted: the law of the flow; values below the scale stand on the"
        " rail at its foot. (c) Share of the largest value in the squared norm while the training"
        " loss falls, without decay, at each method's largest rate. (d) Singular values at the end"
        " of training by SGD, ten classes. Points are medians over the replicates, bars their whole"
        " range. Networks that diverge are left out. Drawn: digits, where there are any.",
        shows={
            "data": ["digits", "fashion_mnist"],
            "optimizer": ["sgd", "momentum", "adam", "adamw"],
        },
    ),
]
