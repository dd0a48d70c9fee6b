"""Drawings of paper C's figures and the preview of its study."""

from math import log

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.training_invariances.invariances.items import ITEMS
from runner.papers.training_invariances.invariances.tables import (
    LAYER,
    SERIES,
    ends,
    final,
    orders,
    power,
    tail,
    telling,
    unrolled,
)
from runner.papers.training_invariances.looks import INVARIANT, KINDS, NOT_INVARIANT, SQUARES
from runner.papers.training_invariances.panels import four_panels, ticks_within
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import nonempty
from runner.results.style import (
    BLUE,
    DASHED,
    INK,
    NAVY,
    QUIET,
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

MOVES = "ReLU layers: D\nLemma 4"
"""What the paper does not promise, of those that `conserved` shows."""

SHOWN = {
    "linear layers: D\nTheorem 1": "promised and pair == 'full'",
    "one ReLU neuron\nLemma 2, (4)": "promised and pair == 'diagonal' and not linear",
    "two ReLU neurons\nLemma 2, (5)": "promised and pair in ('active', 'mixed') and not linear",
    "norms of layers\nLemma 3": "pair == 'layer'",
    MOVES: "pair == 'full' and not promised",
}
"""The panels of `conserved`: a statement of the paper, and the rows that it speaks of."""


def moved(tables: Tables) -> pd.DataFrame:
    """Return how far each quantity has moved, relative to its size, behind the start; without the
    networks that are small enough to list their paths."""
    rows = tables["metrics"]
    rows = rows[(rows["time"] > 0) & (rows["entries"] > 0) & (rows["initial"] > 0)]
    rows = nonempty(rows[~rows["run"].isin(unrolled(tables))], "quantity behind the start")
    return rows.assign(moved=rows["drift"] / rows["initial"])


def say_conserved(tables: Tables) -> str:
    """Say how far D of ReLU layers has moved at the end, and everything else."""
    rows = moved(tables)
    end = rows[rows["time"] == rows["time"].max()]
    end = end[end["learning_rate"] == end["learning_rate"].min()]
    relu = nonempty(end.query(SHOWN[MOVES]), "ReLU layers")["moved"]
    kept = nonempty(end[end["promised"]], "promised invariant")["moved"]
    return (
        f"What the paper says is conserved stays to within {kept.max():.1g} of its size; D of ReLU"
        f" layers, which it does not, moves by {relu.min():.2f} to {relu.max():.2f}"
    )


def draw_drift(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Drift over time at two rates, a panel for each statement."""
    rows = moved(tables)
    fine, coarse = rows["learning_rate"].min(), rows["learning_rate"].max()
    styles = {coarse: {"linewidth": 1.2, "linestyle": DASHED}, fine: {"linewidth": 2.4}}
    rows = rows[rows["learning_rate"].isin(styles)]
    options = {"height": 3.55, "top": 0.6, "gap": 0.22, "left": 0.9}
    picture, (panels,) = sheet(1, len(SHOWN), sharex=True, sharey=True, **options)
    drawn = [pd.DataFrame()]
    for axes, (title, choose) in zip(panels, SHOWN.items(), strict=True):
        look = NOT_INVARIANT if title == MOVES else INVARIANT
        axes.set_title(title, loc="left", size=SMALL, color=look.ink if title == MOVES else INK)
        axes.spines["left"].set_visible(axes is panels[0])
        axes.tick_params(left=axes is panels[0])
        with or_empty(axes):
            own = nonempty(rows.query(choose), f"rows of {title}")
            spread = own.groupby(["learning_rate", "time"])["moved"]
            spread = spread.quantile([0.05, 0.5, 0.95]).unstack().reset_index()
            drawn.append(spread.assign(statement=title.replace("\n", " ")))
            for rate, line in spread.groupby("learning_rate"):
                time = line["time"]
                look.band(axes, time, line[0.05], line[0.95])
                look.line(axes, time, line[0.5], marker="", label=f"rate {rate:g}", **styles[rate])
            if axes is panels[0]:
                axes.legend(loc="upper left", fontsize=SMALL)
            if title == MOVES:
                spot = {"transform": axes.transAxes, "size": SMALL}
                look.name(axes, 0.55, 0.55, "the same at\nboth rates", **spot)
    low = rows.loc[rows["moved"] > 0, "moved"].quantile(0.02) / 3
    panels[0].set(yscale="log", ylim=(max(1e-12, low), 6), xlim=(0, rows["time"].max()))
    panels[0].set_ylabel("‖D(t) − D(0)‖ / ‖D(0)‖")
    panels[2].set_xlabel("time t of the flow")
    return picture, pd.concat(drawn)


ITEM = "plain and (pair == 'full' and linear or pair == 'active' and not linear) and item == "

KEPT = {
    **{f"Theorem 1.{item}: {title}": f"{ITEM}{item}" for item, title in ITEMS.items()},
    "Lemma 2: one neuron": "plain and not graph and promised and pair == 'diagonal'",
    "Lemma 2: two, always on": "plain and not graph and promised and pair == 'active'"
    " and not linear",
    "Lemma 2: two, one pattern": "plain and not graph and promised and pair == 'mixed'",
    "Lemma 3: norms of layers": "plain and not graph and promised and pair == 'layer'",
    "any graph: one unit": "graph and promised and pair == 'diagonal'",
    "any graph: two units": "graph and promised and pair in ('full', 'active', 'mixed')",
    "any graph: cuts": "graph and pair == 'layer'",
    "leaky ReLU": "promised and negative_slope > 0",
    "other losses": "promised and loss != 'logistic'",
    "biases": "promised and biases",
    "1.1 by Runge–Kutta": "pair == 'full' and linear and integrator == 'rk4'",
}
MOVED = {
    "ReLU layers: D (Lemma 4)": "plain and not graph and pair == 'full' and not linear",
    "identity skip: diagonal": "plain and place.str.contains('identity') and item == 0"
    " and pair == 'diagonal'",
    "diagonal skip: D": "plain and place.str.contains('diagonal') and item == 0 and pair == 'full'",
    "graph: next to a frozen weight": "place == 'beside frozen'",
    "graph: a cut less an edge": "pair == 'less an edge'",
}
"""The lines of `first-order` and their rows: what the paper says is invariant, and what is not."""


def fitted_orders(tables: Tables) -> pd.DataFrame:
    """Return the order of every quantity of every replicate with the statement that it belongs to,
    and `relative`, its drift at the smallest rate over its size."""
    rows = pd.concat([final(tables["metrics"], each) for each in ("euler", "rk4")])
    rows = rows[np.isfinite(rows["drift"])]
    finest = rows.sort_values("learning_rate").drop_duplicates(SERIES)
    plain = (finest["loss"] == "logistic") & (finest["integrator"] == "euler")
    finest = finest.assign(
        relative=finest["drift"] / finest["initial"],
        biases=finest["biases"].astype(bool),
        plain=plain & (finest["negative_slope"] == 0) & ~finest["biases"].astype(bool),
        graph=finest["architecture"].str.endswith("graph"),
    )
    found = nonempty(orders(rows), "quantity at three rates").merge(finest, on=SERIES)
    statements = (KEPT | MOVED).items()
    of = [found.query(where, engine="python").assign(statement=name) for name, where in statements]
    return nonempty(pd.concat(of), "quantity of a statement")


def say_orders(tables: Tables) -> str:
    """Say the orders of Theorem 1 and of graphs, and that of what is not conserved."""
    found = fitted_orders(tables).groupby("statement")["order"].median()
    kept = found[[n for n in found.index if n in KEPT and "Runge" not in n]]
    moved = found[[n for n in found.index if n in MOVED]]
    vanishes, stays = (
        " to ".join(dict.fromkeys(f"{order:z.2f}" for order in (each.min(), each.max())))
        for each in (kept, moved)
    )
    return (
        f"On layers and graphs the drift vanishes with the rate (order {vanishes});"
        f" what the paper does not promise moves at rate zero (order {stays})"
    )


def draw_rates(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the order of the drift in the rate and its size, one line for each statement."""
    drawn = fitted_orders(tables)
    names = [*KEPT, *MOVED]
    options = {"height": 6.4, "left": 2.55, "top": 0.45, "ratios": [1.6, 1], "sharey": True}
    picture, ((axes, right),) = sheet(1, 2, **options)
    place = rail(axes, 4.5, -0.6, "none", log=False, axis="x")
    axes.set(ylim=(len(names) - 0.4, -0.8), yticks=[])
    right.set_xscale("log")
    for each in (axes, right):
        each.spines["left"].set_visible(False)
        each.axhline(len(KEPT) - 0.5, color=QUIET.color, linewidth=0.6, zorder=0)
    for x, text in ((0, "moves"), (1, "conserved"), (4, "fourth order")):
        axes.axvline(x, color=QUIET.color, linestyle=QUIET.dashes, linewidth=1.2, zorder=1)
        spot = {"transform": axes.get_xaxis_transform(), "va": "bottom", "size": SMALL}
        QUIET.name(axes, x, 1.005, text, ha="left" if x else "right", **spot)
    for row, statement in enumerate(names):
        look = INVARIANT if statement in KEPT else NOT_INVARIANT
        own = drawn[drawn["statement"] == statement]
        spread = row + np.linspace(-0.22, 0.22, len(own))
        stroke = {"markersize": 11, "markeredgewidth": 2.6, "color": look.ink}
        shown = pd.Series(place(own["order"].clip(lower=-0.6)))
        for each, values in ((axes, shown), (right, own["relative"])):
            look.each(each, values, spread, alpha=0.25)
            each.plot(values.median(), row, "|", **stroke)
        spot = {"transform": axes.get_yaxis_transform(), "ha": "right"}
        look.name(axes, -0.02, row, statement, **spot)
    ticks(axes.xaxis, range(5))
    axes.set_xlabel("order of the drift, at rate zero")
    right.set_xlabel("drift / size, smallest rate")
    return picture, drawn[[*SERIES, "statement", "order", "relative"]]


def growing(tables: Tables) -> pd.DataFrame:
    """Return the layers of Theorem 2 through time at the runs that train longest, of networks that
    separate their data, with `top` and `remainder`, the largest singular value and all others,
    squared, and `apart`, how far adjacent layers are from being aligned."""
    rows = tail(tables)
    rows = rows[rows["separates"] & (rows["layer"] < rows["depth"])]
    rows = nonempty(rows, "network that separates the data")
    rows = rows[rows.groupby("run")["time"].transform("max") == rows["time"].max()]
    return rows.assign(
        top=rows["operator_ratio"] * rows["frobenius"],
        remainder=(1 - rows["operator_ratio"]) * rows["frobenius"],
        apart=1 - rows["alignment"],
    )


def last_dense(tables: Tables) -> pd.DataFrame:
    """Of these the last fully connected layers."""
    rows = growing(tables).query("kind == 'dense' and bound == 1")
    return nonempty(rows[rows["layer"] == rows["depth"] - 1], "fully connected layer")


def exponents(rows: pd.DataFrame) -> pd.Series:
    """Return the exponent of log t in a layer's ||W||_F from half-time on, by LAYER."""
    late = rows[(rows["time"] >= 0.5 * rows["time"].max()) & (rows["log_flow_time"] > 1)]
    late = nonempty(late, "late record")
    # power() gives that of a column in the squared norm, here that of log t.
    return 1 / (2 * power(late, "log_flow_time"))


def say_what_grows(tables: Tables) -> str:
    """Say what becomes of all values but the largest, with which power that grows, and the
    share."""
    rows = last_dense(tables)
    first, last = (rows[rows["time"] == at].set_index(LAYER) for at in (0, rows["time"].max()))
    kept = last["remainder"] / first["remainder"]
    plain = exponents(rows[rows["architecture"] == "linear"]).median()
    return (
        "Of the last layers one singular value grows, slowly: ‖W‖ as the power"
        f" {plain:.3f} of log t for {rows['depth'].mode().iloc[0]} linear layers; all others keep"
        f" their size ({kept.min():.2f} to {kept.max():.2f} times the start)"
    )


def draw_what_grows(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw what grows and stays, alignment, the bounds that say something, signs of weights."""
    parts = [
        (_growth, "squared singular values", "log₁₀ of the time of the flow"),
        (_alignment, "1 − alignment of neighbours", "squared norm ‖W‖²"),
        (_bounds, "where Eq. (14) says something", "‖W‖₂² / ‖W‖²: start ○, end ●, Eq. (14) |"),
        (_signs, "share of weights that change sign", "length of the path"),
    ]
    return four_panels(tables, parts, height=8.0, gap=1.45, left=1.3, right=0.95)


def _growth(axes: Axes, tables: Tables) -> pd.DataFrame:
    """The largest squared singular value and the sum of all others, by the time of the flow."""
    rows = last_dense(tables)
    rows = rows[
        (rows["log_flow_time"] > 1) & rows["architecture"].isin(["linear", "residual_free"])
    ]
    rows = nonempty(rows, "late record").assign(log10_time=rows["log_flow_time"] / log(10))
    axes.set(xscale="log", yscale="log")
    drawn, names = [], []
    for architecture, of in rows.groupby("architecture"):
        free = architecture == "residual_free"
        line = of.groupby("time")[["log10_time", *SQUARES]].median().reset_index()
        for column, look in SQUARES.items():
            style = {"marker": "", "linestyle": DASHED if free else "-"}
            look.line(axes, line["log10_time"], line[column], **style)
        text = f"{'free' if free else 'linear'}:\npower {exponents(of).median():.2f}"
        names.append((line["top"].iloc[-1], text, SQUARES["top"]))
        drawn.append(line.assign(architecture=architecture))
        if not free:
            names.append((line["remainder"].iloc[-1], "all others", SQUARES["remainder"]))
            x = line["log10_time"].iloc[[len(line) // 2, -1]].to_numpy()
            law = (x / x[-1]) ** (2 / of["depth"].iloc[0]) * line["top"].iloc[-1] / 1.6
            guide(axes, x, law)
            QUIET.name(axes, 0.05, 0.93, "dotted: power 1/L", transform=axes.transAxes, ha="left")
    name_ends(axes, names)
    ticks_within(axes.yaxis, 1, 3, 10, 30, 100, 300, 1000)
    return pd.concat(drawn)


def _alignment(axes: Axes, tables: Tables) -> pd.DataFrame:
    """A line for each layer that grows, medians over the replicates, by the kind of layer."""
    rows = growing(tables)
    place = ["data", "architecture", "kind", "layer"]
    columns = ["frobenius", "apart"]
    drawn = rows[rows["time"] > 0].groupby([*place, "time"])[columns].median().reset_index()
    axes.set(xscale="log", yscale="log")
    for (_, _, kind, _), line in drawn.groupby(place):
        KINDS[kind].line(axes, line["frobenius"], line["apart"], alpha=0.8)
    names = {"dense": "fully connected", "residual_free": "free residual", "conv": "convolution"}
    spot = {"transform": axes.transAxes, "ha": "left", "size": SMALL}
    for number, kind in enumerate(sorted(set(drawn["kind"]))):
        KINDS[kind].name(axes, 0.04, 0.2 - 0.07 * number, names[kind], **spot)
    ticks_within(axes.xaxis, 1, 3, 10, 30, 100, 300, 1000)
    return drawn


def _bounds(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Only the layers that the claim is about; dotted: the trivial bound."""
    rows = telling(tables)
    end = ends(nonempty(rows[rows["separates"]], "layer of which the bound says something"))
    end = end.assign(size=end["channels"].where(end["kind"] == "conv", end["width"]))
    end = end.sort_values(["kind", "bound", "size"])
    labels = []
    axes.set_xscale("log")
    for row, (key, of) in enumerate(end.groupby(["kind", "size", "bound", "layer"], sort=False)):
        kind, size, bound, _ = key
        color, y = KINDS[kind].color, [row] * len(of)
        Look(color, hollow=True).line(axes, of["start"], y, linestyle="", markersize=5)
        Look(color).line(axes, of["operator_ratio"], y, linestyle="", markersize=6)
        axes.vlines(bound, row - 0.35, row + 0.35, INK, linewidth=2.2)
        axes.vlines(of["trivial_bound"].iloc[0], row - 0.35, row + 0.35, INK, "dotted")
        labels.append(f"{'conv' if kind == 'conv' else 'free'} {size:.0f}, 1/{1 / bound:.0f}")
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_yticks(range(len(labels)), labels)
    ticks_within(axes.xaxis, 0.003, 0.01, 0.03, 0.1, 0.3, 1)
    return end


def _signs(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Assumption 1 between records, at several rates, by gradient descent and Runge-Kutta."""
    rows = tables["assumptions"]
    several = rows.groupby("run")["learning_rate"].transform("nunique") > 1
    rows = nonempty(rows[several & (rows["time"] > 0)], "runs at several rates")
    keys = ["integrator", "learning_rate", "time"]
    drawn = rows.groupby(keys)["sign_changes"].mean().reset_index()
    axes.set_yscale("log")
    colors, names = shades(sorted(set(drawn["learning_rate"])), SKY, BLUE, NAVY), []
    for (integrator, rate), line in drawn.groupby(["integrator", "learning_rate"]):
        look = Look(colors[rate], "", DASHED if integrator == "rk4" else "-", 1.8)
        look.line(axes, line["time"], line["sign_changes"])
        if integrator == "euler":
            names.append((line["sign_changes"].iloc[-1], f"rate {rate:g}", look))
    name_ends(axes, names)
    QUIET.name(axes, 0.97, 0.93, "dashed: Runge–Kutta", transform=axes.transAxes, ha="right")
    ticks_within(axes.yaxis, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
    return drawn


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Preview of one run: the drift of each place at the end against the rate."""
    metrics = tables["metrics"]
    rows = metrics[(metrics["time"] == metrics["time"].max()) & (metrics["entries"] > 0)]
    place = ["layer", "place", "pair", "item", "promised"]
    table = rows.pivot_table("drift", place, "learning_rate", aggfunc="median", sort=False)
    picture, ((axes,),) = sheet(1, 1, height=3.8)
    axes.set(xscale="log", yscale="log")
    for (*_, promised), line in table.iterrows():
        look = INVARIANT if promised else NOT_INVARIANT
        look.line(axes, line.index, line, alpha=0.6, linewidth=1.2, markersize=4)
    panel(axes, "", "drift at the end; blue: the paper says it is invariant", "rate")
    return picture, table.add_prefix("drift at ").reset_index()


HEADLINE = ["drift"]

FIGURES = [
    Drawing(
        "conserved",
        draw_drift,
        whose="ours",
        unread=("assumptions", "lowrank"),
        findings=[
            Finding(
                say_conserved, holds=["linear-layers", "vertex-wise", "layer-wise", "relu-limit"]
            )
        ],
        caption="How far a quantity has moved from its start during gradient descent, relative to"
        " its size, at the largest rate (dashed) and the smallest (solid). Each panel is a"
        " statement of the paper. Lines are medians and bands the middle 90 % over layers,"
        " replicates, datasets and architectures (all layers linear; two ReLU layers, then"
        " linear). What the flow conserves moves only by the error of a step, and so less at the"
        " smaller rate. Networks of depth 4, whose paths can be listed, are judged and not drawn.",
        shows={
            "architecture": ["linear", "relu_then_linear", "random_graph"],
            "data": ["gaussian", "digits"],
        },
    ),
    Drawing(
        "first-order",
        draw_rates,
        whose="ours",
        unread=("assumptions", "lowrank"),
        findings=[
            Finding(
                say_orders,
                holds=["theorem-1", "vertex-wise", "edge-wise", "layer-wise", "relu-not-invariant"],
            )
        ],
        caption="Left: the order with which the drift at the end of gradient descent goes to zero"
        " with the learning rate, a line for each statement: 1 where the gradient flow conserves"
        " the quantity and only the error of a step moves it, 4 with Runge–Kutta steps; 0 where the"
        " flow itself moves it. On the rail: no drift at all. Right: that drift at the smallest"
        " rate over the size of the quantity. Dots are single quantities of single replicates,"
        " strokes the medians. Blue is what the paper says is invariant, vermilion what it does not"
        " promise: controls, and what is next to weights that are not learned. Graphs are random"
        " and DenseNet-like, of linear, ReLU and leaky units, with some weights frozen.",
        shows={"data": ["gaussian", "digits"]},
    ),
    Drawing(
        "what-grows",
        draw_what_grows,
        whose="ours",
        unread=("metrics",),
        findings=[Finding(say_what_grows, holds=["weights-diverge", "rank-one", "alignment"])],
        caption="Layers of networks that separate their data, under gradient flow. (a) The largest"
        " singular value of the last fully connected layer and all others, squared, against the"
        " logarithm of the flow's own time; solid: linear networks, dashed: with free residual"
        " blocks, each with the power of log t that ‖W‖ grows as; dotted: 1/L. (b) How far adjacent"
        " layers are from being aligned, against the squared norm. (c) The layers at which the"
        " bound of Eq. (14) is above the trivial one (dotted) and above the start, for each"
        " replicate; named by the channels of a convolution or the width of a free block, and by"
        " that bound. (d) Share of the weights with another sign than at the record before, a mean"
        " over replicates, in two ReLU layers and four linear ones."
        " Lines in a and b are medians over the replicates.",
        shows={
            "architecture": ["linear", "relu_then_linear", "conv", "conv_free", "residual_free"],
            "data": ["gaussian", "digits"],
        },
    ),
]
