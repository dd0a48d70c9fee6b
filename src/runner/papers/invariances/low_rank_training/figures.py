"""Drawings of study `low_rank_training`."""

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from runner.papers.invariances.convergence import order_at_zero
from runner.papers.invariances.low_rank_training.tables import (
    METHODS,
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
from runner.results.claims import Tables
from runner.results.evidence import slopes
from runner.results.figures import figure, or_empty, overview
from runner.results.rows import Present, nonempty

DATA = {"digits": "digits", "fashion_mnist": "Fashion-MNIST"}
COLORS = dict(zip(METHODS, ["black", "#56B4E9", "#009E73", "#D55E00", "#CC79A7"], strict=True))
MARKERS = dict(zip(METHODS, "os^Dv", strict=True))
VARIANTS: dict[str, tuple[str, str, Callable[[pd.DataFrame], pd.Series]]] = {
    "two classes": (
        "black",
        "o",
        lambda r: (r["classes"] == 2) & (r["loss_function"] == "logistic"),
    ),
    "SGD": ("#56B4E9", "s", lambda r: r["method"] == METHODS[1]),
    "exponential loss": ("#009E73", "^", lambda r: r["loss_function"] == "exponential"),
    "squared loss": ("#CC79A7", "v", lambda r: r["loss_function"] == "squared"),
    "convolutions": ("#E69F00", "P", lambda r: r["architecture"] == "conv"),
    "ten classes": ("#0072B2", "D", lambda r: r["classes"] > 2),
}
"""Series of panel (c) of figure 4: colour, marker and rows; the first of plain MLPs alone."""

SPREAD = ["median", "min", "max"]
FLOOR = 1e-3
"""Of the remainder in panel (a) of figure 5."""


Part = Callable[[Axes, Tables], pd.DataFrame]
"""Draws one panel; gives back what it has drawn."""


def _draw(tables: Tables, parts: tuple[Part, ...]) -> tuple[Figure, pd.DataFrame]:
    """A row of these panels for each dataset."""
    datasets = [name for name in DATA if name in set(tables["layers"]["data"])]
    datasets = nonempty(pd.Series(datasets), "dataset shown").tolist()
    size = (3.1 * len(parts), 3.4 * len(datasets))
    picture, axes = plt.subplots(len(datasets), len(parts), figsize=size, squeeze=False)
    drawn = []
    for row, data in zip(axes, datasets, strict=True):
        of_data = _of(tables, data)
        for panel, part in zip(row, parts, strict=True):
            with or_empty(panel):
                drawn.append(part(panel, of_data).assign(data=data, panel=panel.get_title()))
        row[0].set_title(f"{DATA[data]}: {row[0].get_title()}")
    return picture, pd.concat(drawn) if drawn else pd.DataFrame({"panel": []})


def _of(tables: Tables, data: str) -> Tables:
    """The rows of one dataset."""
    return Present({name: rows[rows["data"] == data] for name, rows in tables.items()})


def _drawn_layer(rows: pd.DataFrame) -> pd.DataFrame:
    """The last of the inner layers, which is drawn for all of them."""
    return rows[rows["layer"] == rows.groupby("run")["layer"].transform("max")]


def _spread(rows: pd.DataFrame, keys: list[str], column: str) -> pd.DataFrame:
    """Median and range over replicates."""
    return rows.groupby(keys)[column].agg(SPREAD).reset_index()


def _bars(axes: Axes, drawn: pd.DataFrame, x: str, **style) -> None:
    """Medians with the range of the replicates."""
    below, above = drawn["median"] - drawn["min"], drawn["max"] - drawn["median"]
    axes.errorbar(drawn[x], drawn["median"], [below, above], capsize=2, linewidth=1.2, **style)


def _plain_ticks(axis: Axis, ticks: list[float]) -> None:
    """Ticks of a logarithmic axis where they are wanted, as plain numbers; those in view."""
    low, high = axis.get_view_interval()
    shown = [tick for tick in ticks if low <= tick <= high]
    axis.set_ticks(shown, [f"{tick:g}" for tick in shown])
    axis.set_minor_locator(NullLocator())


def _style(classes: int) -> str:
    return "-" if classes == 2 else "--"


def _gain_colors(gains: pd.Series) -> dict[float, tuple]:
    distinct = sorted(set(gains))
    shades = np.linspace(0, 0.85, len(distinct))
    return dict(zip(distinct, map(plt.get_cmap("viridis"), shades), strict=True))


@figure("invariances-fig4")
def draw_without_decay(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 4: the ratio by epoch, the remainder and its bounds, by gain, by width."""
    return _draw(tables, (_ratio_by_epoch, _remainder_by_epoch, _ratio_by_gain, _by_width))


def _ratio_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_gain(tables))
    rows = rows[rows["epoch"] > 0]
    drawn = _spread(rows, ["classes", "gain", "epoch"], "ratio")
    colors = _gain_colors(drawn["gain"])
    for (classes, gain), line in drawn.groupby(["classes", "gain"]):
        style = {"color": colors[gain], "linestyle": _style(classes)}
        axes.plot(line["epoch"], line["median"], **style)
        axes.fill_between(line["epoch"], line["min"], line["max"], color=colors[gain], alpha=0.12)
    handles = [
        Line2D([], [], color=color, label=f"gain {gain:g}") for gain, color in colors.items()
    ]
    handles += [
        Line2D([], [], color="grey", linestyle=_style(K), label=f"{K} classes")
        for K in sorted(set(drawn["classes"]))
    ]
    axes.legend(handles=handles, fontsize=7, loc="center left", bbox_to_anchor=(0, 0.4))
    axes.set(
        xscale="log",
        ylim=(0, 1.02),
        xlabel="epoch",
        ylabel=r"share of the $k$ largest in $\Vert W\Vert_F^2$",
    )
    axes.set_title("ratio")
    return drawn


def _remainder_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_gain(tables))
    keys = ["classes", "gain", "epoch"]
    rows = rows.assign(**{"remainder over start": over_start(rows)})
    start = rows["remainder"] / rows["remainder over start"]
    drawn = _spread(rows, keys, "remainder over start")
    colors = _gain_colors(drawn["gain"])
    # In units of its start the band is the same for all gains.
    for bound in ("lower", "upper"):
        band = (rows[bound] / start).groupby(rows["classes"]).median()
        drawn[bound] = drawn["classes"].map(band)
    for classes, of_classes in drawn.groupby("classes"):
        color = "black" if classes == 2 else "#0072B2"
        low, high = of_classes[["lower", "upper"]].iloc[0]
        axes.axhspan(low, high, color=color, alpha=0.08, lw=0)
        for bound in (low, high):
            axes.axhline(bound, color=color, linestyle=_style(classes), linewidth=0.9)
        place = {"fontsize": 7, "color": color, "va": "bottom"}
        axes.annotate(f" {classes} classes", (0, high), xycoords=("axes fraction", "data"), **place)
        for gain, line in of_classes[of_classes["epoch"] > 0].groupby("gain"):
            style = {"color": colors[gain], "linestyle": _style(classes)}
            axes.plot(line["epoch"], line["median"], **style)
    axes.set(xscale="log", yscale="log", xlabel="epoch", ylabel="remainder over its start")
    _plain_ticks(axes.yaxis, [0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5])
    axes.set_title("remainder, and its bounds")
    return drawn


def _ratio_by_gain(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = ends(_drawn_layer(inner(steady(tables, "layers"))))
    rows = rows[(rows["dtype"] == "float32") & (rows["weight_decay"] == 0)]
    base = by_gain(tables)["width"].iloc[0]
    rows = rows[rows["width"] == base]
    drawn = []
    for number, (name, (color, marker, choose)) in enumerate(VARIANTS.items()):
        chosen = rows[choose(rows)]
        if name == "two classes":
            chosen = chosen[(chosen["method"] == METHODS[0]) & (chosen["architecture"] == "mlp")]
        if len(chosen):
            line = _spread(chosen, ["gain"], "ratio")
            line["beside"] = line["gain"] * 1.02 ** (number - 2)  # equal ones side by side
            _bars(axes, line, "beside", color=color, marker=marker, label=name)
            drawn.append(line.assign(series=name))
    axes.legend(fontsize=7)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="gain", ylabel="ratio at the end")
    _plain_ticks(axes.xaxis, sorted(set(rows["gain"])))
    axes.set_title("networks and losses")
    return pd.concat(drawn)


def _by_width(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_width(tables))
    drawn = []
    for column, color, marker, name in (
        ("remainder", "#0072B2", "s", "remainder"),
        ("top", "#D55E00", "o", r"$\sigma_1^2$"),
    ):
        line = _spread(rows, ["width"], column)
        exponent = slopes(rows, "width", column, log=True).median()
        label = f"{name}: exponent {exponent:.2f}"
        _bars(axes, line, "width", color=color, marker=marker, label=label)
        drawn.append(line.assign(series=column, exponent=exponent))
    axes.set(xscale="log", yscale="log", xlabel="width w", ylabel="squared singular values")
    _plain_ticks(axes.xaxis, sorted(set(rows["width"])))
    _plain_ticks(axes.yaxis, [1, 2, 5, 10, 20, 50, 100, 200])
    axes.legend()
    first = rows.iloc[0]
    axes.set_title(f"gain {first['gain']:g}, time {first['time']:.3g}")
    return pd.concat(drawn)


@figure("invariances-fig5")
def draw_beyond_the_flow(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 5: weight decay, drift against rate, ratio against loss, spectra of ten classes."""
    return _draw(tables, (_against_decay, _drift_by_rate, _ratio_by_loss, _spectra))


def _against_decay(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_decay(tables))
    drawn = _spread(rows, ["method", "classes", "exponent"], "decayed")
    shown = drawn.assign(**drawn[SPREAD].clip(lower=FLOOR))
    for (method, classes), line in shown.groupby(["method", "classes"]):
        style = {"color": COLORS[method], "marker": MARKERS[method], "linestyle": ""}
        filled = "full" if classes == 2 else "none"
        label = method if classes == 2 else None
        _bars(axes, line, "exponent", fillstyle=filled, label=label, **style)
    x = np.linspace(0, drawn["exponent"].max())
    axes.plot(x, np.exp(-x), color="grey", linestyle=":", label=r"$\exp(-2\lambda T)$")
    axes.set(yscale="log", xlabel=r"$2\lambda T$", ylabel="remainder over that without decay")
    axes.set_ylim(FLOOR / 1.5, 2)
    if (drawn["median"] < FLOOR).any():
        least = f"at the edge: below, down to {drawn['median'].min():.0e}"
        axes.annotate(least, (0.7, FLOOR), fontsize=7, va="center")
    axes.legend(fontsize=7)
    axes.set_title("weight decay (open: ten classes)")
    return drawn


def _drift_by_rate(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_rate(tables))
    rows = rows.assign(relative=rows["drift"] / rows["initial_invariant"])
    drawn = _spread(rows, ["method", "learning_rate"], "relative")
    for method, line in drawn.groupby("method"):
        of_method = rows[rows["method"] == method].groupby("replicate")
        order = of_method[["learning_rate", "drift"]].apply(order_at_zero)
        style = {"color": COLORS[method], "marker": MARKERS[method]}
        label = f"{method}: order {order.median():.2f}"
        _bars(axes, line, "learning_rate", label=label, **style)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="learning rate",
        ylabel=r"drift of $D$ over $\Vert D(0)\Vert$",
    )
    axes.set_ylim(top=60 * axes.get_ylim()[1])
    axes.legend(fontsize=7, loc="upper left")
    axes.set_title("drift at one time T")
    return drawn


def _ratio_by_loss(axes: Axes, tables: Tables) -> pd.DataFrame:
    layers = _drawn_layer(inner(steady(tables, "layers")))
    training = steady(tables, "training")[[*NETWORK, "epoch", "loss"]]
    rows = layers.merge(training, on=[*NETWORK, "epoch"])
    rows = rows[(rows["classes"] == 2) & (rows["weight_decay"] == 0)]
    rows = nonempty(rows[rows["dtype"] == "float32"], "rows of two classes without decay")
    rows = rows[rows["method"] != METHODS[4]]  # AdamW without decay is Adam
    keys = ["method", "learning_rate", "epoch"]
    drawn = rows.groupby(keys)[["loss", "ratio"]].median().reset_index()
    for method, of_method in drawn.groupby("method"):
        rates = sorted(set(of_method["learning_rate"]))
        span = f"{rates[0]:g}" + (f" to {rates[-1]:g}" if len(rates) > 1 else "")
        style = {"color": COLORS[method], "marker": MARKERS[method], "markersize": 3}
        for rate, line in of_method.groupby("learning_rate"):
            label = f"{method}, {span}" if rate == rates[0] else None
            axes.plot(line["loss"], line["ratio"], linewidth=1, label=label, **style)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="training loss", ylabel="ratio")
    axes.invert_xaxis()
    axes.legend(fontsize=7, title="learning rate", title_fontsize=7)
    axes.set_title("no decay, two classes")
    return drawn


def _spectra(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(ten_class_spectra(tables))
    largest = rows.groupby([*NETWORK, "layer"])["singular_value"].transform("max")
    rows = rows.assign(relative=rows["singular_value"] / largest)
    drawn = _spread(rows, ["weight_decay", "index"], "relative")
    colors = ["black", "#D55E00"]
    for (decay, line), color, marker in zip(
        drawn.groupby("weight_decay"), colors, "os", strict=False
    ):
        _bars(axes, line, "index", color=color, marker=marker, label=rf"$\lambda$ = {decay:g}")
    K = int(rows["classes"].iloc[0])
    axes.axvline(K - 1, color="grey", linestyle=":", label="K − 1")
    axes.set(xlabel="index i", ylabel=r"$\sigma_i / \sigma_1$", ylim=(0, 1.05))
    axes.legend()
    axes.set_title("spectra of ten classes, SGD")
    return drawn


@overview
def overview_low_rank_training(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: loss, and the ratio of the layer before the last, by epoch."""
    layers, training = _drawn_layer(inner(steady(tables, "layers"))), steady(tables, "training")
    picture, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
    keys = ["gain", "learning_rate", "weight_decay"]
    shown = nonempty(layers[layers["epoch"] > 0], "epoch behind the start")
    for panel, rows, column in ((left, training, "loss"), (right, shown, "ratio")):
        medians = rows[rows["epoch"] > 0].groupby([*keys, "epoch"])[column].median().reset_index()
        for values, line in medians.groupby(keys):
            label = ", ".join(f"{value:g}" for value in values)
            panel.plot(line["epoch"], line[column], marker="o", markersize=3, label=label)
        panel.set(xscale="log", xlabel="epoch", ylabel=column)
    left.set_yscale("log")
    right.legend(title="gain, rate, decay", fontsize=7, title_fontsize=7)
    first = training.iloc[0]
    picture.suptitle(f"{DATA[first['data']]}, {first['classes']} classes, {first['optimizer']}")
    summary = ends(layers).groupby(keys)[["ratio", "remainder", "lower", "upper", "drift"]].median()
    scores = (
        ends(training).groupby(keys)[["loss", "accuracy", "test_accuracy", "sharpness"]].median()
    )
    return picture, scores.join(summary).reset_index()
