"""Drawings of paper C's figures and the quick look of its study."""

from math import log

import matplotlib.pyplot as plt
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
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.rows import nonempty

DATA = {"gaussian": ("tab:blue", "-", "Gaussian"), "digits": ("tab:orange", "--", "digits")}

KINDS = {
    "full D, ReLU neurons": ("tab:red", "-", part("full", linear=False, promised=False)),
    "D of two neurons always on": ("tab:purple", "-", part("active", linear=False)),
    "D of two with one mixed pattern": ("tab:brown", "-", part("mixed", linear=False)),
    "diagonal of D, ReLU neurons": ("tab:blue", "-", part("diagonal", linear=False)),
    "full D, linear neurons": ("tab:green", "-", part("full", linear=True)),
    "difference of layers' norms": ("grey", "--", part("layer")),
}
"""What figure 1 draws: colour, line and rows; red is not invariant, everything else is."""

ARCHITECTURES = {
    "linear": "all layers linear",
    "relu_then_linear": "two ReLU layers, then linear",
    "conv": "ReLU convolution, then linear",
    "residual_free": "ReLU layer, free residual blocks",
    "mixed": "convolution, free blocks, dense",
}


@figure("invariances-fig1")
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
    figure, axes = plt.subplots(
        len(datasets), len(architectures), figsize=size, squeeze=False, sharex=True, sharey=True
    )
    drawn = []
    for row, data in zip(axes, datasets, strict=True):
        for panel, architecture in zip(row, architectures, strict=True):
            chosen = metrics[(metrics["data"] == data) & (metrics["architecture"] == architecture)]
            drawn += _drift_panel(panel, chosen)
            panel.set_title(f"{ARCHITECTURES[architecture]}, {DATA[data][2]}")
        row[0].set_ylabel("drift  ‖D(t) − D(0)‖")
    for panel in axes[-1]:
        panel.set_xlabel("time t of the flow")
    handles = [Line2D([], [], color=c, linestyle=s, label=n) for n, (c, s, _) in KINDS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure, pd.concat(drawn, ignore_index=True)


def _drift_panel(axes: Axes, rows: pd.DataFrame) -> list[pd.DataFrame]:
    """One line per layer and kind."""
    drawn = []
    for name, (color, style, choose) in KINDS.items():
        for (layer, place), line in rows[choose(rows)].groupby(["layer", "place"]):
            spread = line.groupby("time")["drift"].agg(["median", "min", "max"]).reset_index()
            axes.plot(spread["time"], spread["median"], style, color=color, linewidth=1.2)
            if name.startswith("full D, ReLU"):
                axes.fill_between(
                    spread["time"], spread["min"], spread["max"], color=color, alpha=0.12
                )
            about = {"quantity": name, "layer": layer, "place": place}
            drawn.append(spread.assign(**about, **line.iloc[0][["architecture", "data"]]))
    axes.set_yscale("log")
    return drawn


def panels() -> dict[str, list[tuple[Choice, str, str]]]:
    """The panels of figure 2: title -> choices of rows, the integrator, and the line's marker."""

    def plain(choose: Choice) -> Choice:
        return lambda rows: choose(rows) & (variant(rows) == "")

    def promised(name: str) -> list[tuple[Choice, str, str]]:
        def choose(rows: pd.DataFrame) -> pd.Series:
            return rows["promised"] & variant(rows).str.contains(name)

        return [(choose, "euler", "o")]

    items = {
        f"Theorem 1.{each.number}: {each.title}": [(plain(item(each.number)), "euler", "o")]
        for each in ITEMS
    }
    return items | {
        "Lemma 2: diagonal, ReLU": [(plain(part("diagonal", linear=False)), "euler", "o")],
        "Lemma 2: always on, ReLU": [(plain(part("active", linear=False)), "euler", "o")],
        "Lemma 2: mixed pattern, ReLU": [(plain(part("mixed", linear=False)), "euler", "o")],
        "Lemma 3: layers": [(plain(part("layer")), "euler", "o")],
        "all: leaky ReLU": promised("leaky"),
        "all: exponential, squared loss": promised("exponential|squared"),
        "all: with biases": promised("biases"),
        "not invariant": [
            (plain(part("full", linear=False, promised=False)), "euler", "o"),
            (unlearned("identity", "diagonal"), "euler", "s"),
            (unlearned("diagonal", "full"), "euler", "^"),
        ],
        "Theorem 1.1: Runge–Kutta": [(part("full", linear=True), "rk4", "o")],
    }


@figure("invariances-fig2")
def draw_rates(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2: drift at the end against the rate, one panel for each statement."""
    shown = panels()
    columns = 4
    height = -(-len(shown) // columns)  # in panels
    figure, axes = plt.subplots(height, columns, figsize=(10.5, 2.3 * height + 0.6))
    drawn = []
    for panel, (title, lines) in zip(axes.flat, shown.items(), strict=False):
        for choose, integrator, marker in lines:
            rows = final(tables["metrics"], integrator)
            rows = rows[choose(rows) & (rows["entries"] > 0)]
            drawn.append(_rate_lines(panel, rows, marker).assign(panel=title))
        panel.set(xscale="log", yscale="log", title=title)
        own = pd.concat(drawn[-len(lines) :])
        if own.empty:
            panel.text(0.5, 0.5, "none in these runs", transform=panel.transAxes, ha="center")
        elif title != "not invariant":
            _guide(panel, own, 4 if "Kutta" in title else 1)
    for panel in axes.flat[len(shown) :]:
        panel.remove()
    _share_axes(axes.flat[: len(shown)], pd.concat(drawn))
    for panel in axes[:, 0]:
        panel.set_ylabel("drift at the end")
    for panel in axes.flat[max(len(shown) - columns, 0) : len(shown)]:
        panel.set_xlabel("learning rate")
    handles = [
        Line2D([], [], color=c, linestyle=s, marker="o", label=n) for c, s, n in DATA.values()
    ]
    handles += [
        Line2D([], [], color="black", linestyle=":", label="slope 1 (Runge–Kutta: 4)"),
        Line2D([], [], color="grey", marker="o", linestyle="", label="ReLU layers (Lemma 4)"),
        Line2D([], [], color="grey", marker="s", linestyle="", label="identity skip, diagonal"),
        Line2D([], [], color="grey", marker="^", linestyle="", label="diagonal skip, full"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=6)
    return figure, pd.concat(drawn, ignore_index=True)


def _rate_lines(axes: Axes, rows: pd.DataFrame, marker: str) -> pd.DataFrame:
    """One line per place: the median over replicates."""
    place = ["data", "architecture", "layer", "place", "pair"]
    drawn = rows.groupby([*place, "learning_rate"], as_index=False)["drift"].median()
    for (data, *_), line in drawn.groupby(place):
        color, style, _ = DATA[data]
        axes.plot(
            line["learning_rate"],
            line["drift"],
            style,
            marker=marker,
            color=color,
            linewidth=0.9,
            markersize=3 if marker == "o" else 5,
            alpha=0.75,
        )
    return drawn


def _guide(axes: Axes, drawn: pd.DataFrame, slope: int) -> None:
    """A dotted line of the promised slope below the lines."""
    x = np.array(sorted(drawn["learning_rate"].unique()))
    start = drawn[drawn["learning_rate"] == x[0]]["drift"].min() / 2
    axes.plot(x, start * (x / x[0]) ** slope, ":", color="black", linewidth=1.2)


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
        panel.title.set_fontsize(9)


@figure("invariances-fig3")
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
    figure, axes = plt.subplots(
        3, columns, figsize=(2.6 * columns, 7.6), sharey="row", squeeze=False
    )
    drawn, depth = [], int(rows["depth"].max())
    for column, architecture in zip(axes.T, architectures, strict=False):
        chosen = rows[(rows["architecture"] == architecture) & (rows["gain"] == usual)]
        colors = {layer: _color(layer - 1, depth - 1) for layer in range(1, depth)}
        drawn.append(_low_rank_panels(column, chosen, "layer", colors))
        column[0].set_title(ARCHITECTURES[architecture], fontsize=9)
    handles = [
        Line2D([], [], color=_color(layer - 1, depth - 1), label=f"layer {layer}")
        for layer in range(1, depth)
    ]
    if len(gains) > 1:
        varied = rows[rows["gain"] != usual].iloc[0]
        chosen = rows[rows["architecture"] == varied["architecture"]]
        chosen = chosen[(chosen["data"] == varied["data"]) & (chosen["layer"] == depth - 2)]
        colors = {gain: _color(index, len(gains), "plasma") for index, gain in enumerate(gains)}
        drawn.append(_low_rank_panels(axes[:, -1], chosen, "gain", colors))
        title = f"{ARCHITECTURES[varied['architecture']]}:\nlayer {depth - 2}, by starting gain"
        axes[0, -1].set_title(title, fontsize=9)
        handles += [Line2D([], [], color=c, label=f"gain {gain:g}") for gain, c in colors.items()]
    for panels, label in zip(axes, (TIME, TIME, r"$\Vert W\Vert_F^2$"), strict=True):
        for panel in panels:
            panel.set_xlabel(label)
    axes[0, 0].set_ylabel(r"$1 - \Vert W\Vert_2^2 \,/\, \Vert W\Vert_F^2$")
    axes[1, 0].set_ylabel(r"$1 - |\langle v_{l+1}, u_l\rangle|$")
    axes[2, 0].set_ylabel(r"$1 - \Vert W\Vert_2^2 \,/\, \Vert W\Vert_F^2$")
    handles += [Line2D([], [], color="grey", linestyle=s, label=n) for _, s, n in DATA.values()]
    handles += [
        Line2D([], [], color="grey", linestyle="-.", label="1 − bound (14)"),
        Line2D([], [], color="grey", linestyle=":", label="1 − bound (13)"),
        Line2D([], [], color="black", linestyle=":", linewidth=2, label="slope −1"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=8)
    return figure, pd.concat(drawn, ignore_index=True)


TIME = "log$_{10}$ $t$, $t$ the flow's time"


def _color(index: int, count: int, name: str = "viridis"):
    return plt.get_cmap(name)(0.92 * index / max(count - 1, 1))


def _low_rank_panels(column: np.ndarray, rows: pd.DataFrame, by: str, colors: dict) -> pd.DataFrame:
    """The panels of one column: medians over replicates, one line per data and value of `by`."""
    names = ["operator_ratio", "alignment", "bound", "finite_bound", "log10_time", "frobenius"]
    place = ["data", "architecture", "kind", "gain", "layer"]
    drawn = rows.groupby([*place, "time"], as_index=False)[names].median()
    drawn = drawn[drawn["layer"] < rows["depth"].max()]
    for (data, *_), line in drawn.groupby(place):
        style, color = DATA[data][1], colors[line[by].iloc[0]]
        x, rest = line["log10_time"], 1 - line["operator_ratio"]
        column[0].plot(x, rest, style, color=color, linewidth=1.2)
        column[1].plot(x, 1 - line["alignment"], style, color=color, linewidth=1.2)
        column[2].plot(line["frobenius"], rest, style, color=color, linewidth=1.2)
        bound = line["bound"].iloc[0]
        if bound < 1:
            column[0].axhline(1 - bound, color=color, linestyle="-.", linewidth=1)
        elif data == "gaussian":
            tight = line["finite_bound"] > 0
            column[0].plot(x[tight], 1 - line["finite_bound"][tight], ":", color=color, linewidth=1)
    for panel in column[:2]:
        panel.set(xscale="symlog", yscale="log")
        panel.xaxis.get_major_locator().set_params(numticks=6)
    column[2].set(xscale="log", yscale="log")
    late = drawn[drawn["bound"] == 1].sort_values("frobenius")
    if len(late):
        x = late["frobenius"].iloc[[len(late) // 2, -1]].to_numpy()
        top = (late["frobenius"] * (1 - late["operator_ratio"])).max()
        column[2].plot(x, 2 * top / x, ":", color="black", linewidth=2)
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
    figure, axes = plt.subplots(figsize=(6.4, 4))
    for index, line in table.iterrows():
        color = "tab:green" if index[4] else "tab:red"
        axes.plot(line.index, line, "o-", color=color, alpha=0.6, linewidth=1)
    handles = [
        Line2D([], [], color="tab:green", label="the paper says it is invariant"),
        Line2D([], [], color="tab:red", label="it does not"),
    ]
    axes.legend(handles=handles)
    title = f"{metrics['architecture'].iloc[0]}, {metrics['data'].iloc[0]}"
    axes.set(
        xscale="log", yscale="log", xlabel="learning rate", ylabel="drift at the end", title=title
    )
    table.columns = [f"drift at {rate:g}" for rate in table.columns]
    return figure, table.reset_index()
