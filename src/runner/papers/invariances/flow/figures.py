"""Drawings of paper C's figures and the quick look of its study."""

from math import log
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, NullLocator

from runner.papers.invariances.flow.items import ITEMS
from runner.papers.invariances.flow.tables import (
    Choice,
    final,
    item,
    part,
    separating,
    tail,
    unlearned,
    unrolled,
    variant,
)
from runner.papers.invariances.looks import DATA, INVARIANT, NOT_INVARIANT, QUANTITIES
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.rows import nonempty
from runner.results.style_before import (
    BLACK,
    DASHDOT,
    DOTTED,
    GREY,
    HOLLOW,
    Look,
    band,
    guide,
    ordered,
    points,
    sparse,
    subplots,
)

KINDS = {
    "full D, ReLU neurons": part("full", linear=False, promised=False),
    "D of two neurons always on": part("active", linear=False),
    "D of two with one mixed pattern": part("mixed", linear=False),
    "diagonal of D, ReLU neurons": part("diagonal", linear=False),
    "full D, linear neurons": part("full", linear=True),
    "difference of layers' norms": part("layer"),
}
"""The rows of what figure 1 draws."""

ARCHITECTURES = {
    "linear": "all layers linear",
    "relu_then_linear": "two ReLU layers, then linear",
    "conv": "ReLU convolution, then linear",
    "residual_free": "ReLU layer, free residual blocks",
    "mixed": "convolution, free blocks, dense",
}


@figure(
    "invariances-fig1",
    caption="How far each quantity has moved from its start after time t of gradient flow, a row"
    " for each dataset, a column for each architecture, at the smallest learning rate. Lines are"
    " medians over the replicates, one for each layer or pair of layers; bands, of what is not"
    " invariant alone, the whole range of the replicates.",
)
def draw_drift(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 1: drift over time at the finest rate, median and range over replicates."""
    metrics = tables["metrics"]
    finest = metrics["learning_rate"] == metrics["learning_rate"].min()
    metrics = metrics[finest & (metrics["time"] > 0) & (metrics["entries"] > 0)]
    metrics = metrics[~metrics["run"].isin(unrolled(tables))]
    metrics = nonempty(metrics[metrics["architecture"].isin(ARCHITECTURES)], "architecture shown")
    architectures = [name for name in ARCHITECTURES if name in set(metrics["architecture"])]
    datasets = [name for name in DATA if name in set(metrics["data"])]
    size = (3.9 * len(architectures) + 0.4, 2.7 * len(datasets) + 0.8)
    picture, axes = subplots(
        len(datasets), len(architectures), size=size, squeeze=False, sharex=True, sharey=True
    )
    drawn = []
    for row, data in zip(axes, datasets, strict=True):
        for panel, architecture in zip(row, architectures, strict=True):
            chosen = metrics[(metrics["data"] == data) & (metrics["architecture"] == architecture)]
            drawn += _drift_panel(panel, chosen)
            panel.set_title(f"{ARCHITECTURES[architecture]}, {DATA[data].label}")
        row[0].set_ylabel("drift  ‖D(t) − D(0)‖")
    for panel in axes[-1]:
        panel.set_xlabel("time t of the flow")
        panel.xaxis.get_major_locator().set_params(integer=True)
    shown = {name for each in drawn for name in each["quantity"].unique()}
    handles = [
        Line2D([], [], label=name, **look.both)
        for name, look in QUANTITIES.items()
        if name in shown
    ]
    picture.legend(handles=handles, loc="outside lower center", ncols=3)
    return picture, pd.concat(drawn, ignore_index=True)


def _drift_panel(axes: Axes, rows: pd.DataFrame) -> list[pd.DataFrame]:
    """One line per layer and kind."""
    drawn = []
    for kind, (name, choose) in enumerate(KINDS.items()):
        look = QUANTITIES[name]
        for (layer, place), line in rows[choose(rows)].groupby(["layer", "place"]):
            spread = line.groupby("time")["drift"].agg(["median", "min", "max"]).reset_index()
            mark = {"linewidth": points(1.2), "markevery": sparse(len(spread), kind, 5)}
            axes.plot(spread["time"], spread["median"], **look.both | mark)
            if look.color == NOT_INVARIANT.color:
                band(axes, spread["time"], spread["min"], spread["max"], look.color)
            about = {"quantity": name, "layer": layer, "place": place}
            drawn.append(spread.assign(**about, **line.iloc[0][["architecture", "data"]]))
    axes.set_yscale("log")
    return drawn


Lines = list[tuple[Choice, str, str]]
"""Choices of rows, each with the integrator and a name; nothing where one name is enough."""

SHAPES = {"ReLU layers (Lemma 4)": "o", "identity skip, diagonal": "s", "diagonal skip, full": "^"}
"""Of the markers of what is not invariant."""


def panels() -> dict[str, Lines]:
    """The panels of figure 2 by their titles."""

    def plain(choose: Choice) -> Choice:
        return lambda rows: choose(rows) & (variant(rows) == "")

    def promised(name: str) -> Lines:
        def choose(rows: pd.DataFrame) -> pd.Series:
            return rows["promised"] & variant(rows).str.contains(name)

        return [(choose, "euler", "")]

    def one(choose: Choice) -> Lines:
        return [(plain(choose), "euler", "")]

    relu, identity, diagonal = SHAPES
    items = {f"Theorem 1.{each.number}: {each.title}": one(item(each.number)) for each in ITEMS}
    return items | {
        "Lemma 2: diagonal, ReLU": one(part("diagonal", linear=False)),
        "Lemma 2: always on, ReLU": one(part("active", linear=False)),
        "Lemma 2: mixed pattern, ReLU": one(part("mixed", linear=False)),
        "Lemma 3: layers": one(part("layer")),
        "all: leaky ReLU": promised("leaky"),
        "all: exponential, squared loss": promised("exponential|squared"),
        "all: with biases": promised("biases"),
        "not invariant": [
            (plain(part("full", linear=False, promised=False)), "euler", relu),
            (unlearned("identity", "diagonal"), "euler", identity),
            (unlearned("diagonal", "full"), "euler", diagonal),
        ],
        "Theorem 1.1: Runge–Kutta": [(part("full", linear=True), "rk4", "")],
    }


@figure(
    "invariances-fig2",
    caption="Drift of each quantity at the end of gradient descent against the learning rate, a"
    " panel for each statement. Lines are medians over the replicates, one for each place in a"
    " network; dotted: proportional to the rate, for Runge–Kutta to its fourth power. Of what is"
    " not invariant the three kinds stand beside each other, without lines.",
)
def draw_rates(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2: drift at the end against the rate, one panel for each statement."""
    shown = panels()
    columns = 4
    height = -(-len(shown) // columns)  # in panels
    picture, axes = subplots(height, columns, size=(10.5, 2.3 * height + 0.6))
    drawn = []
    for panel, (title, lines) in zip(axes.flat, shown.items(), strict=False):
        own = []
        for choose, integrator, name in lines:
            rows = final(tables["metrics"], integrator)
            rows = rows[choose(rows) & (rows["entries"] > 0)]
            own.append(_rate_dots(panel, rows, name) if name else _rate_lines(panel, rows))
        drawn += [each.assign(panel=title) for each in own]
        panel.set(xscale="log", yscale="log", title=title)
        own = pd.concat(own)
        if own.empty:
            panel.text(0.5, 0.5, "none in these runs", transform=panel.transAxes, ha="center")
        elif len(lines) == 1:
            _guide(panel, own, 4 if "Kutta" in title else 1)
        else:
            panel.legend(handles=_shapes(), loc="lower center", handletextpad=0.2)
    for panel in axes.flat[len(shown) :]:
        panel.remove()
    _share_axes(axes.flat[: len(shown)], pd.concat(drawn))
    for panel in axes[:, 0]:
        panel.set_ylabel("drift at the end")
    for panel in axes.flat[max(len(shown) - columns, 0) : len(shown)]:
        panel.set_xlabel("learning rate")
    there = set(pd.concat(drawn)["data"])
    handles = [Line2D([], [], label=k.label, **k.both) for n, k in DATA.items() if n in there]
    slope = Line2D([], [], label="slope 1 (Runge–Kutta: 4)", **_slope())
    picture.legend(handles=[*handles, slope], loc="outside lower center", ncols=3)
    return picture, pd.concat(drawn, ignore_index=True)


PLACE = ["data", "architecture", "layer", "place", "pair"]


def _medians(rows: pd.DataFrame) -> pd.DataFrame:
    """The median over the replicates, by place and rate."""
    return rows.groupby([*PLACE, "learning_rate"], as_index=False)["drift"].median()


def _rate_lines(axes: Axes, rows: pd.DataFrame) -> pd.DataFrame:
    """One line per place: the median over replicates."""
    drawn = _medians(rows)
    thin = {"linewidth": points(0.9), "markersize": points(3), "alpha": 0.75}
    for (data, *_), line in drawn.groupby(PLACE):
        axes.plot(line["learning_rate"], line["drift"], **DATA[data].both | thin)
    return drawn


def _rate_dots(axes: Axes, rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Hollow markers of a shape of their own, beside those of other names."""
    drawn = _medians(rows)
    beside = 1.22 ** (list(SHAPES).index(name) - 1)
    shape = {"marker": SHAPES[name], "markersize": points(4.5), "markeredgewidth": points(0.8)}
    for data, dots in drawn.groupby("data"):
        style = DATA[data].dots | HOLLOW | shape
        axes.plot(dots["learning_rate"] * beside, dots["drift"], **style)
    return drawn


def _shapes() -> list[Line2D]:
    """What the shapes of the markers of what is not invariant stand for."""
    look = {"color": BLACK, "linestyle": "none", "markersize": points(5)} | HOLLOW
    return [Line2D([], [], marker=marker, label=name, **look) for name, marker in SHAPES.items()]


def _slope() -> dict:
    """Of the lines of a promised slope."""
    return guide(color=BLACK)


def _guide(axes: Axes, drawn: pd.DataFrame, slope: int) -> None:
    """A dotted line of the promised slope below the lines."""
    x = np.array(sorted(drawn["learning_rate"].unique()))
    start = drawn[drawn["learning_rate"] == x[0]]["drift"].min() / 2
    axes.plot(x, start * (x / x[0]) ** slope, **_slope())


def _share_axes(panels: np.ndarray, drawn: pd.DataFrame) -> None:
    """One range of drift for all panels but Runge-Kutta's, ticks at the rates."""
    common = drawn[~drawn["panel"].str.contains("Kutta")]["drift"]
    limits = common.min() / 4, common.max() * 3
    for panel in panels:
        shared = np.isfinite(limits).all() and limits[0] > 0
        if shared and "Kutta" not in panel.get_title():
            panel.set_ylim(limits)
        rows = drawn[drawn["panel"] == panel.get_title()]
        rates = sorted(rows["learning_rate"].unique())
        panel.set_xticks(rates, [f"{rate:g}" for rate in rates])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.title.set_fontsize(panel.xaxis.label.get_fontsize() - 1)


@figure(
    "invariances-fig3",
    caption="What is left of the squared norm of a layer beside its largest singular value (above),"
    " and how far adjacent layers are from being aligned (middle), against the decimal logarithm of"
    " the flow's own time; and the first against the squared norm (below). A column for each"
    " architecture, and at the right one layer of one of them for several gains of the starting"
    " weights. Lines are medians over the replicates, the lighter the higher the layer, or the"
    " larger the gain; thin dotted and dash-dotted: what the bounds (13) and (14) leave; thick"
    " dotted: slope −1.",
)
def draw_low_rank(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 3: ratio and alignment of the layers of Theorem 2 over the flow's own log time, and
    the ratio against the norm; at the right for several gains of the starting weights."""
    rows = separating(tail(tables))
    rows = rows[rows["time"] > 0].assign(log10_time=lambda r: r["log_flow_time"] / log(10))
    rows = nonempty(rows[rows["architecture"].isin(ARCHITECTURES)], "architecture shown")
    gains = sorted(rows["gain"].unique())
    usual = rows["gain"].mode().iloc[0]
    architectures = [name for name in ARCHITECTURES if name in set(rows["architecture"])]
    columns = len(architectures) + (len(gains) > 1)
    size = (2.4 * columns, 7.6)
    picture, axes = subplots(3, columns, size=size, sharey="row", squeeze=False)
    drawn, depth = [], int(rows["depth"].max())
    layers = ordered(range(1, depth))
    for column, architecture in zip(axes.T, architectures, strict=False):
        chosen = rows[(rows["architecture"] == architecture) & (rows["gain"] == usual)]
        drawn.append(_low_rank_panels(column, chosen, "layer", layers))
        column[0].set_title(fill(ARCHITECTURES[architecture], 20), fontsize="medium")
    handles = [Line2D([], [], label=f"layer {n}", **_solid(look)) for n, look in layers.items()]
    if len(gains) > 1:
        varied = rows[rows["gain"] != usual].iloc[0]
        chosen = rows[rows["architecture"] == varied["architecture"]]
        chosen = chosen[(chosen["data"] == varied["data"]) & (chosen["layer"] == depth - 2)]
        looks = ordered(gains, "plasma")
        drawn.append(_low_rank_panels(axes[:, -1], chosen, "gain", looks))
        title = f"{fill(ARCHITECTURES[varied['architecture']], 20)}:\nlayer {depth - 2}, by gain"
        axes[0, -1].set_title(title, fontsize="medium")
        handles += [Line2D([], [], label=f"gain {g:g}", **_solid(k)) for g, k in looks.items()]
    for panels, label in zip(axes, (TIME, TIME, r"$\Vert W\Vert_F^2$"), strict=True):
        for panel in panels:
            panel.set_xlabel(label)
    axes[0, 0].set_ylabel(r"$1 - \Vert W\Vert_2^2 \,/\, \Vert W\Vert_F^2$")
    axes[1, 0].set_ylabel(r"$1 - |\langle v_{l+1}, u_l\rangle|$")
    axes[2, 0].set_ylabel(r"$1 - \Vert W\Vert_2^2 \,/\, \Vert W\Vert_F^2$")
    grey = {"color": GREY, "linewidth": points(1.2)}
    there = set(pd.concat(drawn)["data"])
    handles += [
        Line2D([], [], linestyle=look.dashes, label=look.label, **grey)
        for name, look in DATA.items()
        if name in there
    ]
    handles += [
        Line2D([], [], linestyle=DASHDOT, label="1 − bound (14)", **grey),
        Line2D([], [], linestyle=DOTTED, label="1 − bound (13)", **grey),
        Line2D([], [], label="slope −1", **_slope() | {"linewidth": points(2)}),
    ]
    picture.legend(handles=handles, loc="outside lower center", ncols=8)
    return picture, pd.concat(drawn, ignore_index=True)


TIME = "log$_{10}$ of the time (log axis)"


def _solid(look: Look) -> dict:
    """A shade with its marker; the dashes tell the data."""
    return look.both | {"linestyle": "-", "linewidth": points(1.2), "markersize": points(3.5)}


def _low_rank_panels(
    column: np.ndarray, rows: pd.DataFrame, by: str, looks: dict[float, Look]
) -> pd.DataFrame:
    """The panels of one column: medians over replicates, one line per data and value of `by`."""
    names = ["operator_ratio", "alignment", "bound", "finite_bound", "log10_time", "frobenius"]
    place = ["data", "architecture", "kind", "gain", "layer"]
    drawn = rows.groupby([*place, "time"], as_index=False)[names].median()
    drawn = drawn[drawn["layer"] < rows["depth"].max()]
    numbers = {value: number for number, value in enumerate(looks)}
    for (data, *_), line in drawn.groupby(place):
        look = looks[line[by].iloc[0]]
        style = _solid(look) | {"linestyle": DATA[data].dashes}
        style |= {"markevery": sparse(len(line), numbers[line[by].iloc[0]], 3)}
        x, rest = line["log10_time"], 1 - line["operator_ratio"]
        column[0].plot(x, rest, **style)
        column[1].plot(x, 1 - line["alignment"], **style)
        column[2].plot(line["frobenius"], rest, **style)
        bound = line["bound"].iloc[0]
        thin = {"color": look.color, "linewidth": points(1)}
        if bound < 1:
            column[0].axhline(1 - bound, linestyle=DASHDOT, **thin)
        elif data == "gaussian":
            tight = line["finite_bound"] > 0
            left = 1 - line["finite_bound"][tight]
            column[0].plot(x[tight], left, linestyle=DOTTED, **thin)
    for panel in column[:2]:
        panel.set_xscale("symlog", linthresh=10)
        panel.set_yscale("log")
        panel.xaxis.get_major_locator().set_params(numticks=4)
    column[2].set(xscale="log", yscale="log")
    late = drawn[drawn["bound"] == 1].sort_values("frobenius")
    if len(late):
        x = late["frobenius"].iloc[[len(late) // 2, -1]].to_numpy()
        top = (late["frobenius"] * (1 - late["operator_ratio"])).max()
        column[2].plot(x, 2 * top / x, **_slope() | {"linewidth": points(2)})
    return drawn


@overview
def overview_invariances(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the drift of each place at the end against the rate."""
    metrics = tables["metrics"]
    rows = metrics[(metrics["time"] == metrics["time"].max()) & (metrics["entries"] > 0)]
    place = ["layer", "place", "pair", "item", "promised"]
    table = rows.pivot_table(
        index=place, columns="learning_rate", values="drift", aggfunc="median", sort=False
    )
    picture, axes = subplots(size=(6.4, 4))
    for index, line in table.iterrows():
        look = INVARIANT if index[4] else NOT_INVARIANT
        axes.plot(line.index, line, alpha=0.6, linewidth=points(1), **look.both)
    handles = [
        Line2D([], [], label="the paper says it is invariant", **INVARIANT.both),
        Line2D([], [], label="it does not", **NOT_INVARIANT.both),
    ]
    axes.legend(handles=handles)
    title = f"{metrics['architecture'].iloc[0]}, {DATA[metrics['data'].iloc[0]].label}"
    axes.set(
        xscale="log", yscale="log", xlabel="learning rate", ylabel="drift at the end", title=title
    )
    table.columns = [f"drift at {rate:g}" for rate in table.columns]
    return picture, table.reset_index()
