"""Drawings of study `low_rank_training`."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from runner.papers.invariances import looks
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
from runner.results.captions import DATASETS
from runner.results.claims import Tables
from runner.results.evidence import slopes
from runner.results.figures import figure, or_empty, overview
from runner.results.rows import NoRows, Present, nonempty
from runner.results.style_before import (
    GREY,
    Look,
    band,
    beside,
    guide,
    ordered,
    points,
    sparse,
    subplots,
)

VARIANTS: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "two classes": lambda r: (r["classes"] == 2) & (r["loss_function"] == "logistic"),
    "SGD": lambda r: r["method"] == METHODS[1],
    "exponential loss": lambda r: r["loss_function"] == "exponential",
    "squared loss": lambda r: r["loss_function"] == "squared",
    "convolutions": lambda r: r["architecture"] == "conv",
    "ten classes": lambda r: r["classes"] > 2,
}
"""Series of panel (c) of figure 4: their rows; the first of plain MLPs alone."""

SPREAD = ["median", "min", "max"]
FLOOR = 1e-3
"""Of the remainder in panel (a) of figure 5."""


Part = Callable[[Axes, Tables], pd.DataFrame]
"""Draws one panel; gives back what it has drawn."""


def _draw(tables: Tables, parts: tuple[Part, ...]) -> tuple[Figure, pd.DataFrame]:
    """These panels two in a row; of several datasets, a column of panels for each."""
    datasets = [name for name in DATASETS if name in set(tables["layers"]["data"])]
    datasets = nonempty(pd.Series(datasets), "dataset shown").tolist()
    several = len(datasets) > 1
    across = len(datasets) if several else 2
    down = -(-len(parts) * len(datasets) // across)
    size = (4.2 * across, (3.5 if several else 4.1) * down)
    picture, axes = subplots(down, across, size=size, squeeze=False)
    drawn = []
    for own, data in zip(axes.T if several else [axes.flat], datasets, strict=True):
        of_data = _of(tables, data)
        for panel, part in zip(own, parts, strict=True):
            with or_empty(panel):
                drawn.append(part(panel, of_data).assign(data=data, panel=panel.get_title()))
            if several:
                panel.set_title(f"{DATASETS[data]}: {panel.get_title()}")
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
    bars = {"capsize": points(2), "linewidth": points(1.2)}
    axes.errorbar(drawn[x], drawn["median"], [below, above], **bars | style)


def _legend(axes: Axes, **options) -> None:
    """Below the panel, where it covers nothing."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), **options)


def _plain_ticks(axis: Axis, ticks: list[float]) -> None:
    """Ticks of a logarithmic axis where they are wanted, as plain numbers; those in view."""
    low, high = axis.get_view_interval()
    shown = [tick for tick in ticks if low <= tick <= high]
    axis.set_ticks(shown, [f"{tick:g}" for tick in shown])
    axis.set_minor_locator(NullLocator())


def _classes(classes: int) -> Look:
    return looks.CLASSES[classes == 2]


def _gains(gains: pd.Series) -> dict[float, Look]:
    """Shade and marker of each gain; the dashes tell the classes."""
    return ordered(sorted(set(gains)))


def say_without_decay(tables: Tables) -> str:
    """Panels and marks of figure 4, and of which networks few are left."""
    return (
        "Training as usual, the last inner layer for all of them: the share that its k largest"
        " singular values have in its squared norm, k the number that the corollary names, by"
        " epoch; what is left beside them over its start, by epoch, with the bounds on it (bands"
        " between lines, named at the right); that share at the end, by the gain of the starting"
        " weights; and the largest value and what is left, squared, by width. Lines and points are"
        " medians over the replicates; bars, and of the share by epoch bands, their whole range;"
        " by gain, series stand a little beside each other. Networks that diverge are left"
        f" out{_mostly_left_out(tables['layers'])}."
    )


def _mostly_left_out(layers: pd.DataFrame) -> str:
    """The networks of which at least half diverged, in words."""
    kinds = ["data", "classes", "architecture", "loss_function"]
    networks = layers.groupby([*kinds, *NETWORK])["diverged"].any()
    diverged = networks.groupby([*kinds, "gain"])
    lost = pd.DataFrame({"diverged": diverged.sum(), "all": diverged.size()}).reset_index()
    words = [
        f"{kind.diverged} of {kind.all} on {DATASETS[kind.data]} with {kind.classes} classes"
        f" ({kind.architecture}, {kind.loss_function.replace('_', ' ')}, gain {kind.gain:g})"
        for kind in lost[2 * lost["diverged"] >= lost["all"]].itertuples()
    ]
    return f": {'; '.join(words)}" if words else ""


@figure("invariances-fig4", caption=say_without_decay)
def draw_without_decay(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 4: the ratio by epoch, the remainder and its bounds, by gain, by width."""
    return _draw(tables, (_ratio_by_epoch, _remainder_by_epoch, _ratio_by_gain, _by_width))


def _by_epoch(axes: Axes, drawn: pd.DataFrame, with_bands: bool) -> list[Line2D]:
    """A line for each number of classes and gain; gives back what the legend says of them."""
    gains, classes = _gains(drawn["gain"]), sorted(set(drawn["classes"]))
    for (K, gain), line in drawn[drawn["epoch"] > 0].groupby(["classes", "gain"]):
        look, place = gains[gain], list(gains).index(gain)
        style = look.both | {"linestyle": _classes(K).dashes}
        axes.plot(line["epoch"], line["median"], markevery=sparse(len(line), place, 4), **style)
        if with_bands:
            band(axes, line["epoch"], line["min"], line["max"], look.color)
    axes.set(xscale="log", xlabel="epoch")
    solid = {"linestyle": "-"}
    handles = [
        Line2D([], [], label=f"gain {gain:g}", **look.both | solid) for gain, look in gains.items()
    ]
    return handles + [
        Line2D([], [], color=GREY, linestyle=_classes(K).dashes, label=f"{K} classes")
        for K in classes
    ]


def _ratio_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_gain(tables))
    drawn = _spread(rows[rows["epoch"] > 0], ["classes", "gain", "epoch"], "ratio")
    _legend(axes, handles=_by_epoch(axes, drawn, with_bands=True), ncols=3)
    axes.set(ylim=(0, 1.02), ylabel=r"share of the $k$ largest in $\Vert W\Vert_F^2$")
    axes.set_title("ratio")
    return drawn


def _remainder_by_epoch(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_gain(tables))
    keys = ["classes", "gain", "epoch"]
    rows = rows.assign(**{"remainder over start": over_start(rows)})
    start = rows["remainder"] / rows["remainder over start"]
    drawn = _spread(rows, keys, "remainder over start")
    # In units of its start the band is the same for all gains.
    for bound in ("lower", "upper"):
        limit = (rows[bound] / start).groupby(rows["classes"]).median()
        drawn[bound] = drawn["classes"].map(limit)
    axes.set_yscale("log")
    for classes, of_classes in drawn.groupby("classes"):
        look = _classes(classes)
        low, high = of_classes[["lower", "upper"]].iloc[0]
        axes.axhspan(low, high, color=look.color, alpha=0.08, lw=0)
        for bound in (low, high):
            axes.axhline(bound, linewidth=points(0.9), **look.line)
    _legend(axes, handles=_by_epoch(axes, drawn, with_bands=False), ncols=3)
    axes.set(ylabel="remainder over its start")
    _plain_ticks(axes.yaxis, [0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5])
    for classes, high in drawn.groupby("classes")["upper"].first().items():
        beside(axes, high, f"{classes} cl.", color=_classes(classes).color)
    axes.set_title("remainder, and its bounds")
    return drawn


def _ratio_by_gain(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = ends(_drawn_layer(inner(steady(tables, "layers"))))
    rows = rows[(rows["dtype"] == "float32") & (rows["weight_decay"] == 0)]
    base = by_gain(tables)["width"].iloc[0]
    rows = rows[rows["width"] == base]
    drawn = []
    for number, (name, choose) in enumerate(VARIANTS.items()):
        chosen = rows[choose(rows)]
        if name == "two classes":
            chosen = chosen[(chosen["method"] == METHODS[0]) & (chosen["architecture"] == "mlp")]
        if len(chosen):
            line = _spread(chosen, ["gain"], "ratio")
            line["beside"] = line["gain"] * 1.02 ** (number - 2)  # equal ones side by side
            _bars(axes, line, "beside", label=name, **looks.VARIANTS[name].both)
            drawn.append(line.assign(series=name))
    _legend(axes, ncols=2)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="gain", ylabel="ratio at the end")
    _plain_ticks(axes.xaxis, sorted(set(rows["gain"])))
    axes.set_title("networks and losses")
    return pd.concat(drawn)


def _by_width(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_width(tables))
    drawn = []
    for column, name in (("remainder", "remainder"), ("top", r"$\sigma_1^2$")):
        line = _spread(rows, ["width"], column)
        exponent = slopes(rows, "width", column, log=True).median()
        label = f"{name}: exponent {exponent:z.2f}"
        _bars(axes, line, "width", label=label, **looks.SQUARES[column].both)
        drawn.append(line.assign(series=column, exponent=exponent))
    axes.set(xscale="log", yscale="log", xlabel="width w", ylabel="squared singular values")
    _plain_ticks(axes.xaxis, sorted(set(rows["width"])))
    _plain_ticks(axes.yaxis, [1, 2, 5, 10, 20, 50, 100, 200])
    _legend(axes)
    first = rows.iloc[0]
    axes.set_title(f"gain {first['gain']:g}, time {first['time']:.3g}")
    return pd.concat(drawn)


def say_beyond_the_flow(tables: Tables) -> str:
    """Panels and marks of figure 5, and what is drawn at the edge."""
    try:
        drawn = _decayed(tables)
        under = drawn.loc[drawn["median"] < FLOOR, "median"]
        edge = f", down to {under.min():.0e}, at the edge" if len(under) else ""
    except NoRows:
        edge = ""
    return (
        "Beyond gradient flow, the last inner layer for all of them: what is left beside the k"
        " largest singular values over that without weight decay, against twice the decay times"
        f" the time (hollow, a little to the right: ten classes; smaller ones{edge}), with the law"
        " of the flow; drift of its invariant at one time, against the learning rate, with the"
        " fitted orders; share of the k largest values while the loss falls, at several rates; and"
        " spectra of networks of ten classes, with and without weight decay. Points are medians"
        " over the replicates, bars their whole range. Networks that diverge are left out."
    )


@figure("invariances-fig5", caption=say_beyond_the_flow)
def draw_beyond_the_flow(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 5: weight decay, drift against rate, ratio against loss, spectra of ten classes."""
    return _draw(tables, (_against_decay, _drift_by_rate, _ratio_by_loss, _spectra))


def _decayed(tables: Tables) -> pd.DataFrame:
    """What is left over that without decay, by method, classes and twice the decay times time."""
    rows = _drawn_layer(by_decay(tables))
    return _spread(rows, ["method", "classes", "exponent"], "decayed")


def _against_decay(axes: Axes, tables: Tables) -> pd.DataFrame:
    drawn = _decayed(tables)
    shown = drawn.assign(**drawn[SPREAD].clip(lower=FLOOR))
    for (method, classes), line in shown.groupby(["method", "classes"]):
        filled = {"fillstyle": "full" if classes == 2 else "none"}
        label = {"label": method if classes == 2 else None}
        line = line.assign(beside=line["exponent"] + 0.06 * (classes != 2))
        _bars(axes, line, "beside", **looks.METHODS[method].dots | filled | label)
    hollow = {"color": GREY, "marker": "o", "fillstyle": "none", "linestyle": "none"}
    if (drawn["classes"] != 2).any():
        axes.plot([], [], label="hollow: ten classes", **hollow)
    x = np.linspace(0, drawn["exponent"].max())
    axes.plot(x, np.exp(-x), label=r"$\exp(-2\lambda T)$", **guide())
    axes.set(yscale="log", xlabel=r"$2\lambda T$", ylabel="remainder over that without decay")
    axes.set_ylim(FLOOR / 1.5, 2)
    if (drawn["median"] < FLOOR).any():
        beside(axes, FLOOR, "or less")
    _legend(axes, ncols=2)
    axes.set_title("weight decay")
    return drawn


def _drift_by_rate(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(by_rate(tables))
    rows = rows.assign(relative=rows["drift"] / rows["initial_invariant"])
    drawn = _spread(rows, ["method", "learning_rate"], "relative")
    for method, line in drawn.groupby("method"):
        of_method = rows[rows["method"] == method].groupby("replicate")
        order = of_method[["learning_rate", "drift"]].apply(order_at_zero)
        label = f"{method}: order {order.median():z.2f}"
        _bars(axes, line, "learning_rate", label=label, **looks.METHODS[method].both)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="learning rate",
        ylabel=r"drift of $D$ over $\Vert D(0)\Vert$",
    )
    _legend(axes)
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
        style = looks.METHODS[method].both
        style |= {"markersize": points(3.5), "fillstyle": "none", "linewidth": points(1)}
        for rate, line in of_method.groupby("learning_rate"):
            label = f"{method}, rate {span}" if rate == rates[0] else None
            axes.plot(line["loss"], line["ratio"], label=label, **style)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="training loss", ylabel="ratio")
    axes.invert_xaxis()
    _legend(axes)
    axes.set_title("no decay, two classes")
    return drawn


def _spectra(axes: Axes, tables: Tables) -> pd.DataFrame:
    rows = _drawn_layer(ten_class_spectra(tables))
    largest = rows.groupby([*NETWORK, "layer"])["singular_value"].transform("max")
    rows = rows.assign(relative=rows["singular_value"] / largest)
    drawn = _spread(rows, ["weight_decay", "index"], "relative")
    for (decay, line), look in zip(drawn.groupby("weight_decay"), looks.DECAYS, strict=False):
        _bars(axes, line, "index", label=rf"$\lambda$ = {decay:g}", **look.both)
    K = int(rows["classes"].iloc[0])
    axes.axvline(K - 1, label="K − 1", **guide())
    axes.set(xlabel="index i", ylabel=r"$\sigma_i / \sigma_1$", ylim=(0, 1.05))
    axes.xaxis.get_major_locator().set_params(integer=True)
    _legend(axes, ncols=3)
    axes.set_title("ten classes, SGD")
    return drawn


@overview
def overview_low_rank_training(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: loss, and the ratio of the layer before the last, by epoch."""
    layers, training = _drawn_layer(inner(steady(tables, "layers"))), steady(tables, "training")
    picture, (left, right) = subplots(1, 2, size=(7.4, 3.2))
    keys = ["gain", "learning_rate", "weight_decay"]
    shown = nonempty(layers[layers["epoch"] > 0], "epoch behind the start")
    for panel, rows, column in ((left, training, "loss"), (right, shown, "ratio")):
        medians = rows[rows["epoch"] > 0].groupby([*keys, "epoch"])[column].median().reset_index()
        groups = medians.groupby(keys)
        for (values, line), look in zip(groups, ordered(range(len(groups))).values(), strict=True):
            label = ", ".join(f"{value:g}" for value in values)
            panel.plot(line["epoch"], line[column], label=label, **look.both)
        panel.set(xscale="log", xlabel="epoch", ylabel=column)
    left.set_yscale("log")
    right.legend(title="gain, rate, decay")
    first = training.iloc[0]
    picture.suptitle(f"{DATASETS[first['data']]}, {first['classes']} classes, {first['optimizer']}")
    summary = ends(layers).groupby(keys)[["ratio", "remainder", "lower", "upper", "drift"]].median()
    scores = (
        ends(training).groupby(keys)[["loss", "accuracy", "test_accuracy", "sharpness"]].median()
    )
    return picture, scores.join(summary).reset_index()
