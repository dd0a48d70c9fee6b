"""Drawings of study `low_rank_training`."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.training_invariances.looks import CLASSES, METHODS, SQUARES
from runner.papers.training_invariances.low_rank_training.tables import (
    METHODS as NAMES,
)
from runner.papers.training_invariances.low_rank_training.tables import (
    NETWORK,
    by_decay,
    by_gain,
    by_rate,
    by_width,
    ends,
    inner,
    over_start,
    steady,
    ten_class_spectra,
)
from runner.results.captions import DATASETS
from runner.results.claims import Tables
from runner.results.evidence import slopes
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import Present, nonempty
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

KINDS: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "two classes": lambda r: (
        (r["classes"] == 2)
        & (r["loss_function"] == "logistic")
        & (r["method"] == NAMES[0])
        & (r["architecture"] == "mlp")
    ),
    "SGD": lambda r: r["method"] == NAMES[1],
    "exponential loss": lambda r: r["loss_function"] == "exponential",
    "squared loss": lambda r: r["loss_function"] == "squared",
    "convolutions": lambda r: r["architecture"] == "conv",
    "ten classes": lambda r: r["classes"] > 2,
}
"""The rows of panel (c) of `low-rank-training`."""

SPREAD = ["median", "min", "max"]
FLOOR = 3e-4
"""Where the scale of the remainder in panel (b) of `beyond-gradient-flow` ends."""


def _shown(tables: Tables) -> tuple[str, Tables]:
    """The dataset that is drawn, digits where there are any, and its rows."""
    there = set(tables["layers"]["data"])
    names = [name for name in DATASETS if name in there]
    data = nonempty(pd.Series(names), "dataset shown").iloc[0]
    rows = {name: table[table["data"] == data] for name, table in tables.items()}
    return data, Present(rows)


def _drawn_layer(rows: pd.DataFrame) -> pd.DataFrame:
    """The last of the inner layers, which is drawn for all of them."""
    return rows[rows["layer"] == rows.groupby("run")["layer"].transform("max")]


def _spread(rows: pd.DataFrame, keys: list[str], column: str) -> pd.DataFrame:
    """Median and range over replicates."""
    return rows.groupby(keys)[column].agg(SPREAD).reset_index()


def _bars(axes: Axes, x: pd.Series, rows: pd.DataFrame, look: Look, **options) -> None:
    """Medians, joined unless linestyle is "none", with the range of the replicates."""
    reach = [rows["median"] - rows["min"], rows["max"] - rows["median"]]
    bars = {"linestyle": "none", "elinewidth": 1.0, "color": look.color, "zorder": 2}
    axes.errorbar(x, rows["median"], reach, marker="", **bars)
    look.line(axes, x, rows["median"], **{"markersize": 6} | options)


def say_gain_one(tables: Tables) -> str:
    """The share at gain one, at the start and at the end, and that the remainder stays."""
    _, tables = _shown(tables)
    rows = _drawn_layer(by_gain(steady(tables)))
    rows = nonempty(rows[(rows["classes"] == 2) & (rows["gain"] == 1)], "gain one")
    rows = rows.assign(kept=over_start(rows))
    end = ends(rows)
    return (
        "Training as usual does not end at low rank: at gain one the largest singular value ends"
        f" at {100 * end['ratio'].median():.0f} % of ‖W‖², and the others keep their size"
        f" ({100 * end['kept'].median():.0f} %)"
    )


def draw_without_decay(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """The ratio by epoch, the remainder and its bounds, by gain, by width."""
    data, tables = _shown(tables)
    picture, ((a, b), (c, d)) = sheet(2, 2, height=7.6, gap=1.5, left=1.1, right=1.15)
    drawn = []
    parts = ((a, _ratio_by_epoch), (b, _remainder_by_epoch), (c, _ratio_by_kind), (d, _by_width))
    for axes, part in parts:
        with or_empty(axes):
            drawn.append(part(axes, tables).assign(data=data, panel=part.__name__.strip("_")))
    panel(a, "a", "share of the k largest in ‖W‖²", "epoch")
    panel(b, "b", "all others, over their start", "epoch")
    panel(c, "c", "the same at the end, by gain", "share of the k largest in ‖W‖²")
    panel(d, "d", "squared singular values", "width")
    return picture, pd.concat(drawn) if drawn else pd.DataFrame({"panel": []})


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
    ticks(axes.xaxis, [e for e in (1, 10, 100, 1000, 10000) if e <= drawn["epoch"].max()])
    name_ends(axes, names)


def _ratio_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_gain(steady(tables)))
    drawn = _spread(rows[rows["epoch"] > 0], ["classes", "gain", "epoch"], "ratio")
    axes.set_ylim(0, 1.02)
    _by_epoch(axes, drawn)
    many = drawn[drawn["classes"] > 2]
    if len(many):
        start = many.loc[many["epoch"] == many["epoch"].min(), "median"].max()
        place = {"xycoords": ("axes fraction", "data"), "ha": "left", "size": SMALL}
        away = {"xytext": (0, 9), "textcoords": "offset points"}
        Look(BLUE).name(axes, 0.03, start, "dashed: ten classes", **place, **away)
    return drawn


def _remainder_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_gain(steady(tables)))
    rows = rows.assign(**{"remainder over start": over_start(rows)})
    start = rows["remainder"] / rows["remainder over start"]
    drawn = _spread(rows, ["classes", "gain", "epoch"], "remainder over start")
    # In units of its start the band is the same for all gains.
    for bound in ("lower", "upper"):
        limit = (rows[bound] / start).groupby(rows["classes"]).median()
        drawn[bound] = drawn["classes"].map(limit)
    axes.set_yscale("log")
    for classes, of_classes in drawn.groupby("classes"):
        low, high = of_classes[["lower", "upper"]].iloc[0]
        if np.isfinite([low, high]).all() and low > 0:
            axes.axhspan(low, high, color=CLASSES[classes == 2].color, alpha=0.08, lw=0)
            place = {"xycoords": ("axes fraction", "data"), "va": "top", "ha": "left"}
            text = "bounds" if classes == 2 else f"{classes} classes"
            CLASSES[classes == 2].name(axes, 0.03, high * 0.97, text, size=SMALL, **place)
    _by_epoch(axes, drawn)
    low, high = axes.get_ylim()
    ticks(axes.yaxis, [y for y in (0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5) if low <= y <= high])
    return drawn


def _ratio_by_kind(axes: Axes, tables: Tables) -> pd.DataFrame:
    """A row for each kind of network and loss, a point for each gain."""
    rows = ends(_drawn_layer(inner(steady(tables))))
    rows = rows[(rows["dtype"] == "float32") & (rows["weight_decay"] == 0)]
    rows = rows[rows["width"] == by_gain(steady(tables))["width"].iloc[0]]
    drawn, colors = [], _gains(rows)
    for number, (name, choose) in enumerate(KINDS.items()):
        line = _spread(rows[choose(rows)], ["gain"], "ratio")
        for each in line.itertuples():
            look = Look(colors[each.gain])
            axes.plot([each.min, each.max], [number] * 2, color=look.color, linewidth=1.4)
            look.line(axes, [each.median], [number])
        drawn.append(line.assign(series=name))
    axes.set(xlim=(0, 1.02), ylim=(len(KINDS) - 0.5, -0.5))
    axes.set_yticks(range(len(KINDS)), [name.replace(" ", "\n") for name in KINDS])
    return pd.concat(drawn)


def _by_width(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_width(tables))
    drawn, names = [], []
    axes.set(xscale="log", yscale="log")
    for column, name in (("remainder", "all others"), ("top", "largest")):
        line = _spread(rows, ["width"], column)
        exponent = slopes(rows, "width", column, log=True).median()
        _bars(axes, line["width"], line, SQUARES[column])
        names.append((line["median"].iloc[-1], f"{name}:\npower {exponent:z.2f}", SQUARES[column]))
        drawn.append(line.assign(series=column, exponent=exponent))
    ticks(axes.xaxis, sorted(set(rows["width"])))
    low, high = axes.get_ylim()
    ticks(axes.yaxis, [y for y in (1, 2, 5, 10, 20, 50, 100, 200, 500) if low <= y <= high])
    name_ends(axes, names)
    return pd.concat(drawn)


def say_law(tables: Tables) -> str:
    """How near SGD and momentum keep the law, and where Adam ends."""
    rows = by_decay(steady(tables))
    rows = rows.assign(law=rows["decayed"] * np.exp(rows["exponent"]))
    kept = nonempty(rows[rows["method"].isin(NAMES[1:3])], "SGD with weight decay")["law"]
    adam = nonempty(rows[rows["method"] == NAMES[3]], "Adam with weight decay")["decayed"]
    return (
        "SGD and momentum keep the law of gradient flow under weight decay (what is left /"
        f" exp(−2λT): {kept.min():.2f} to {kept.max():.2f}); Adam breaks it: at most"
        f" {adam.max():.0e} is left"
    )


def draw_beyond_the_flow(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Drift against rate, weight decay, ratio against loss, spectra of ten classes."""
    data, tables = _shown(tables)
    picture, ((a, b), (c, d)) = sheet(2, 2, height=7.6, gap=1.75, left=0.85, right=1.45)
    drawn = []
    parts = ((a, _drift_by_rate), (b, _against_decay), (c, _ratio_by_loss), (d, _spectra))
    for axes, part in parts:
        with or_empty(axes):
            drawn.append(part(axes, tables).assign(data=data, panel=part.__name__.strip("_")))
    panel(a, "a", "drift of D / ‖D(0)‖", "learning rate")
    panel(b, "b", "remainder / without decay", "2λT")
    panel(c, "c", "share of σ₁² in ‖W‖²", "training loss, falling →")
    panel(d, "d", "singular values of ten classes", "index")
    return picture, pd.concat(drawn) if drawn else pd.DataFrame({"panel": []})


def _drift_by_rate(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_rate(tables))
    rows = rows.assign(relative=rows["drift"] / rows["initial_invariant"])
    drawn = _spread(rows, ["method", "learning_rate", "time"], "relative")
    axes.set(xscale="log", yscale="log")
    names = []
    for method, line in drawn.groupby("method"):
        _bars(axes, line["learning_rate"], line, METHODS[method])
        text = f"{method},\nT = {line['time'].iloc[0]:.0f}".replace("gradient d", "gradient\nd")
        names.append((line["median"].iloc[-1], text, METHODS[method]))
    rates = drawn["learning_rate"]
    ticks(axes.xaxis, [x for x in (0.001, 0.01, 0.1) if rates.min() / 2 <= x <= 2 * rates.max()])
    name_ends(axes, names)
    return drawn


def _against_decay(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_decay(steady(tables)))
    drawn = _spread(rows, ["method", "classes", "exponent"], "decayed")
    shown = drawn[drawn["classes"] == drawn["classes"].min()]
    place = rail(axes, FLOOR, 1.7)
    last, names = max(0.1, shown["exponent"].max()), []
    x = np.linspace(0, last)
    guide(axes, x, np.exp(-x))
    axes.set_xlim(-0.04 * last, 1.1 * last)
    for method, own in shown.groupby("method"):
        above = own.assign(**{name: place(own[name]) for name in SPREAD})
        _bars(axes, own["exponent"], above, METHODS[method], linestyle="")
        end, text = own["median"].iloc[-1], method
        if end < FLOOR:
            powers = np.floor(np.log10(own["median"].clip(lower=1e-300)))
            text = f"{method}: 10$^{{{powers.min():.0f}}}$\nto 10$^{{{powers.max() + 1:.0f}}}$"
        names.append((float(place(end)), text, METHODS[method]))
    name_ends(axes, names)
    Look(GREY).name_at(axes, x, np.exp(-x), "e$^{−2λT}$", 0.36 * last, (8, 8))
    ticks(axes.yaxis, [0.001, 0.01, 0.1, 1])
    return drawn


def _spectra(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(ten_class_spectra(tables))
    drawn = _spread(rows, ["weight_decay", "index"], "singular_value")
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
    layers = _drawn_layer(inner(steady(tables)))
    training = steady(tables, "training")[[*NETWORK, "epoch", "loss"]]
    rows = layers.merge(training, on=[*NETWORK, "epoch"])
    rows = rows[(rows["classes"] == 2) & (rows["weight_decay"] == 0)]
    rows = nonempty(rows[rows["dtype"] == "float32"], "rows of two classes without decay")
    rows = rows[rows["method"] != NAMES[4]]  # AdamW without decay is Adam
    keys = ["method", "learning_rate", "epoch"]
    drawn = rows.groupby(keys)[["loss", "ratio"]].median().reset_index()
    axes.set(xscale="log", ylim=(0, 1))
    largest = drawn.groupby("method")["learning_rate"].transform("max")
    last = []
    for method, line in drawn[drawn["learning_rate"] == largest].groupby("method"):
        look = METHODS[method]
        thick = {"linewidth": 2.4 if method == NAMES[3] else 1.6, "marker": ""}
        look.line(axes, line["loss"], line["ratio"], **thick)
        end = line.iloc[-1]
        look.line(axes, [end["loss"]], [end["ratio"]])
        last.append((method, end["loss"], end["ratio"]))
    axes.invert_xaxis()
    name_ends(axes, [(ratio, method, METHODS[method]) for method, _, ratio in last])
    low = np.floor(np.log10(drawn["loss"].clip(lower=1e-300).min()))
    powers = sorted({0, *np.round(low * np.array([1 / 3, 2 / 3, 1])).astype(int)})
    ticks(axes.xaxis, [10.0**p for p in powers], [f"10$^{{{p}}}$" for p in powers])
    return drawn


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: loss, and the ratio of the layer before the last, by epoch."""
    keys = ["gain", "learning_rate", "weight_decay"]
    layers, training = _drawn_layer(inner(steady(tables))), steady(tables, "training")
    drawn = layers.merge(training[[*NETWORK, "epoch", "loss"]], on=[*NETWORK, "epoch"])
    shown = nonempty(drawn[drawn["epoch"] > 0], "epoch behind the start")
    lines = shown.groupby([*keys, "epoch"])[["loss", "ratio"]].median().reset_index(level="epoch")
    colors = shades(lines.index.unique(), SKY, BLUE, NAVY)
    picture, ((left, right),) = sheet(height=3.6, gap=0.8, right=1.7)
    left.set(xscale="log", yscale="log")
    right.set_xscale("log")
    names = []
    for values, color in colors.items():
        line, look = lines.loc[[values]], Look(color, "")
        look.line(left, line["epoch"], line["loss"])
        look.line(right, line["epoch"], line["ratio"])
        names.append((line["ratio"].iloc[-1], ", ".join(f"{v:g}" for v in values), look))
    name_ends(right, names)
    panel(left, "a", f"loss, {DATASETS[training['data'].iloc[0]]}", "epoch")
    panel(right, "b", "ratio; gain, rate, decay", "epoch")
    summary = ["ratio", "remainder", "lower", "upper", "drift", "loss"]
    return picture, ends(drawn).groupby(keys)[summary].median().reset_index()


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
        " classes; dashed: ten. (b) What is left beside them over its start; bands: the bounds that"
        " the invariants set, inner for two classes. (c) The share at the end for other networks"
        " and losses, a point for each gain, coloured as in a. (d) The largest value and what is"
        " left, squared, by width. Lines and points are medians over the replicates, bars their"
        " whole range. Networks that diverge are left out. Drawn: digits, where there are any.",
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
