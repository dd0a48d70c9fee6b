"""Draw the figures of study `invariances` of paper C, and the preview of one run."""

from math import log
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.training_invariances.invariances.items import ITEMS
from runner.papers.training_invariances.invariances.tables import (
    SERIES,
    ends,
    final,
    longest,
    orders,
    tail,
    telling,
    unrolled,
)
from runner.papers.training_invariances.looks import INVARIANT, KINDS, NOT_INVARIANT, SQUARES
from runner.papers.training_invariances.names import NAMES
from runner.papers.training_invariances.panels import panels_in_pairs, ticks_within
from runner.results.drawing import Drawing, Finding
from runner.results.evidence import slopes
from runner.results.rows import Tables, nonempty
from runner.results.style import (
    BLUE,
    DASHED,
    INK,
    QUIET,
    SMALL,
    Look,
    guide,
    is_at_left,
    key,
    name_ends,
    panel,
    rail,
    sheet,
    ticks,
)

D = "D = W₂ᵀW₂ − W₁W₁ᵀ"
"""Definition of D of two adjacent layers, as printed in pictures."""

MOVES = "ReLU layers: D\nLemma 4"
"""Title of the panel of `conserved` whose quantity is not an invariant."""

LINEAR = "linear layers: D\nTheorem 1"
"""Title of the panel about linear layers."""

SHOWN = {
    LINEAR: "promised and pair == 'full'",
    "one ReLU neuron\nLemma 2, Eq. (4)": "promised and pair == 'diagonal' and not linear",
    "two ReLU neurons\nLemma 2, Eq. (5)": "promised and pair in ('active', 'mixed') and not linear",
    "norms of layers\nLemma 3": "pair == 'layer'",
    MOVES: "pair == 'full' and not promised",
}
"""Panels of `conserved`: a statement of the paper, and the condition on its rows."""

MIDDLE = [0.05, 0.5, 0.95]
"""Quantiles in `conserved`: the median, and the ends of the middle 90 %."""


def moved(tables: Tables) -> pd.DataFrame:
    """Return quantiles of the change of conserved quantities, for figure `conserved`.

    There is a row for each statement of the paper, learning rate and time. Its columns 0.05, 0.5
    and 0.95 are quantiles over quantities and networks. Each change is divided by the quantity's
    initial size. Small networks for Lemma 1, whose paths are listed, are excluded. Raises NoRows if
    no quantity remains.
    """
    rows = tables["metrics"]
    rows = rows[(rows["time"] > 0) & (rows["entries"] > 0) & (rows["initial"] > 0)]
    rows = nonempty(rows[~rows["run"].isin(unrolled(tables))], "quantity after the start")
    rows = rows.assign(moved=rows["drift"] / rows["initial"])
    parts = []
    for statement, where in SHOWN.items():
        drifts = rows.query(where).groupby(["learning_rate", "time"])["moved"]
        part = drifts.quantile(MIDDLE).unstack().reset_index()
        parts.append(part.assign(statement=statement))
    return nonempty(pd.concat(parts), "rows of a statement")


def caption_drift(tables: Tables) -> str:
    """Return the caption of figure `conserved`, about the panels that have rows."""
    shown = {*moved(tables)["statement"]}
    control = "; the orange one is a control" if MOVES in shown else ""
    defined = f" {D} compares adjacent layers." if shown & {MOVES, LINEAR} else ""
    unread = " Depth 4 is not drawn." if len(unrolled(tables)) else ""
    return (
        "Panels show the relative change of a quantity by time t of gradient flow. According to the"
        f" paper, the blue quantities are constant{control}.{defined} Lines are medians, bands the"
        f" middle 90 % of layers and networks.{unread}"
    )


def say_conserved(tables: Tables) -> str:
    """Return the headline of figure `conserved`, with the range of the changes of D.

    D is the matrix of two adjacent ReLU layers. The range is that of the middle 90 % at the end, at
    the smallest learning rate. Raises NoRows if there are no ReLU layers.
    """
    rows = moved(tables).query("statement == @MOVES")
    rows = nonempty(rows[rows["learning_rate"] == rows["learning_rate"].min()], "ReLU layers")
    end = rows.loc[rows["time"].idxmax()]
    return (
        "The invariants of the paper stay constant; between ReLU layers the matrix D changes by"
        f" {100 * end[MIDDLE[0]]:.0f} to {100 * end[MIDDLE[-1]]:.0f} %"
    )


def _same(coarse_by_fine: pd.Series) -> str:
    """Return a phrase for the panel: which changes are equal at both learning rates.

    coarse_by_fine: for each quantile, its value at the larger learning rate divided by its value at
    the smaller one.
    """
    near = (coarse_by_fine - 1).abs() < 0.1
    if near.all():
        return "the same at\nboth rates"
    return "median the same\nat both rates" if near[0.5] else ""


def draw_drift(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `conserved`: the change of conserved quantities against time.

    There is a panel for each statement of the paper that has rows. The change is divided by the
    quantity's initial size. A line is the median and a band the middle 90 % of quantities and
    networks, at the smallest and the largest learning rate. Returns the picture and the drawn
    quantiles, one row for each statement, learning rate and time.
    """
    drawn = moved(tables)
    fine, coarse = drawn["learning_rate"].min(), drawn["learning_rate"].max()
    styles = {coarse: {"linewidth": 1.2, "linestyle": DASHED}, fine: {"linewidth": 2.4}}
    drawn = drawn[drawn["learning_rate"].isin(styles)]
    statements = [statement for statement in SHOWN if statement in {*drawn["statement"]}]
    options = {"height": 3.95, "top": 0.85, "gap": 0.22, "left": 1.1}
    picture, (panels,) = sheet(1, len(statements), sharex=True, sharey=True, **options)
    for axes, statement in zip(panels, statements, strict=True):
        look = NOT_INVARIANT if statement == MOVES else INVARIANT
        title_ink = look.ink if statement == MOVES else INK
        axes.set_title(statement, loc="left", size=SMALL, color=title_ink)
        axes.spines["left"].set_visible(is_at_left(axes))
        axes.tick_params(left=is_at_left(axes))
        of_statement = drawn[drawn["statement"] == statement]
        for rate, line in of_statement.groupby("learning_rate"):
            look.band(axes, line["time"], line[MIDDLE[0]], line[MIDDLE[-1]])
            look.line(axes, line["time"], line[0.5], marker="", **styles[rate])
        ends = of_statement[of_statement["time"] == of_statement["time"].max()].set_index(
            "learning_rate"
        )[MIDDLE]
        if statement == MOVES and {fine, coarse} <= {*ends.index}:
            if fine < coarse and (words := _same(ends.loc[coarse] / ends.loc[fine])):
                look.note(axes, 0.02, 0.99, words, va="top")
            low, high = ends.loc[fine, [MIDDLE[0], MIDDLE[-1]]]
            text, end = f"{100 * low:.0f} to {100 * high:.0f} %", drawn["time"].max()
            look.name(axes, end, low / 1.5, text, ha="right", va="top", size=SMALL)
    low = max(1e-12, drawn.loc[drawn[MIDDLE[0]] > 0, MIDDLE[0]].min() / 2)
    panels[0].set(yscale="log", ylim=(low, 10), xlim=(0, drawn["time"].max()))
    powers = [10.0**power for power in range(-12, 1, 2)]
    labels = [f"{100 * power:,.10f}".rstrip("0").rstrip(".") + " %" for power in powers]
    shown = [k for k, power in enumerate(powers) if power > low]
    ticks(panels[0].yaxis, [powers[k] for k in shown], [labels[k] for k in shown])
    above: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
    panels[0].annotate("change / initial size", (0, 1), (0, 40), annotation_clip=False, **above)
    rates = {f"{fine:g}": Look(BLUE, "")}
    rates |= {f"{coarse:g}": Look(BLUE, "", DASHED, 1.2)} if fine < coarse else {}
    key(panels[0], rates, loc="upper left", title="learning rate")
    if statements[-1] == MOVES:
        words = f"{D.replace(' − ', chr(10) + '− ')}\nof two layers"
        QUIET.note(panels[-1], 0.04, 0.5, words, va="top")
    panels[0].xaxis.get_major_locator().set_params(nbins=2)
    panels[0].xaxis.set_major_formatter("{x:g}")
    lowest = panels[-1] if is_at_left(panels[-1]) else panels[len(panels) // 2]
    lowest.set_xlabel("time t of gradient flow")
    return picture, drawn.assign(statement=drawn["statement"].str.replace("\n", " "))


FREE_BLOCK = "free block: residual block\nwith a trained matrix as its skip"

ITEM = "plain and (pair == 'full' and linear or pair == 'active' and not linear) and item == "

KEPT = {
    **{f"Theorem 1.{item}: {title}": f"{ITEM}{item}" for item, title in ITEMS.items()},
    "Lemma 2: one neuron": "plain and not graph and promised and pair == 'diagonal'",
    "Lemma 2: two, always active": "plain and not graph and promised and pair == 'active'"
    " and not linear",
    "Lemma 2: two, equal pattern": "plain and not graph and promised and pair == 'mixed'",
    "Lemma 3: norms of layers": "plain and not graph and promised and pair == 'layer'",
    "graph: one neuron": "graph and promised and pair == 'diagonal'",
    "graph: two neurons": "graph and promised and pair in ('full', 'active', 'mixed')",
    "graph: norms of cuts": "graph and pair == 'layer'",
    "with leaky ReLU": "promised and negative_slope > 0",
    "with other losses": "promised and loss != 'logistic'",
    "with biases": "promised and biases",
    "1.1 with Runge–Kutta steps": "pair == 'full' and linear and integrator == 'rk4'",
}
MOVED = {
    f"{D} of ReLU layers": "plain and not graph and pair == 'full' and not linear",
    "diagonal of D, identity skip": "plain and place.str.contains('identity') and item == 0"
    " and pair == 'diagonal'",
    "D, diagonal skip": "plain and place.str.contains('diagonal') and item == 0 and pair == 'full'",
    "graph: neuron at a frozen weight": "place == 'beside frozen'",
    "graph: cut without one edge": "pair == 'less an edge'",
}
"""Lines of `first-order`: statement and condition on its rows; not all are invariants."""


def fitted_orders(tables: Tables) -> pd.DataFrame:
    """Return the convergence order of each quantity in each replicate, with the statement about it.

    The column `order` is the exponent of the drift in the learning rate, see `tables.orders`. The
    drift is the largest change since the start. `relative` is drift / initial size at the smallest
    learning rate, `statement` the label of the row in the figure. Raises NoRows if no quantity was
    measured at three learning rates.
    """
    rows = pd.concat([final(tables["metrics"], method) for method in ("euler", "rk4")])
    rows = rows[np.isfinite(rows["drift"])]
    finest = rows.sort_values("learning_rate").drop_duplicates(SERIES)
    plain = (finest["loss"] == "logistic") & (finest["integrator"] == "euler")
    finest = finest.assign(
        relative=finest["drift"] / finest["initial"],
        biases=finest["biases"].astype(bool),
        plain=plain & (finest["negative_slope"] == 0) & ~finest["biases"].astype(bool),
        graph=finest["architecture"].str.endswith("graph"),
    )
    fitted = nonempty(orders(rows), "quantity at three rates").merge(finest, on=SERIES)
    statements = (KEPT | MOVED).items()
    of_statements = [
        fitted.query(where, engine="python").assign(statement=name) for name, where in statements
    ]
    return nonempty(pd.concat(of_statements), "quantity of a statement")


def say_orders(tables: Tables) -> str:
    """Return the headline of figure `first-order`: finite steps alone change the invariants.

    The sentence has no numbers, so the tables are not read.
    """
    return (
        "The paper's invariants change only because steps are finite; D of ReLU layers changes"
        " equally at every learning rate"
    )


MOST_ORDER = 1.5
"""Largest order on the axis of `first-order`; larger orders are drawn next to the axis."""

LEAST_ORDER = -0.5
"""Value at which lower orders are drawn."""

TINY = 1e-3
"""Initial size, in units of a statement's median, below which a drift has a hollow dot."""


def draw_rates(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `first-order`: a row of dots for each statement about a quantity.

    The left panel has the convergence order on its x-axis, the right one the drift divided by the
    initial size. A dot is a quantity of a replicate, a stroke the median. Returns the picture and a
    table with a row for each dot.
    """
    drawn = fitted_orders(tables)
    names = [*KEPT, *MOVED]
    options = {"height": 6.9, "left": 3.2, "top": 0.6, "ratios": [1.3, 1], "sharey": True}
    picture, ((axes, right),) = sheet(1, 2, **options, beside=True)
    position = rail(axes, MOST_ORDER, LEAST_ORDER - 0.1, "", log=False, axis="x")
    axes.set(ylim=(len(names) - 0.4, -0.8), yticks=[])
    right.set_xscale("log")
    for side in (axes, right):
        side.spines["left"].set_visible(False)
        side.axhline(len(KEPT) - 0.5, color=QUIET.color, linewidth=0.6, zorder=0)
    spot = {"transform": axes.get_xaxis_transform(), "va": "bottom", "size": SMALL}
    for x, text, look in ((0, "flow changes it", NOT_INVARIANT), (1, "conserved", INVARIANT)):
        axes.axvline(x, color=QUIET.color, linestyle=QUIET.dashes, linewidth=1.2, zorder=1)
        look.name(axes, x, 1.005, text, **spot)
    beyond = drawn.loc[drawn["order"] > MOST_ORDER, "order"]
    if len(beyond):
        text = f"≈ {beyond.median():.0f}"
        INVARIANT.name(axes, float(position(np.inf)), 1.005, text, **spot)
    hollow: list[float] = []
    counted = ""
    for row, statement in enumerate(names):
        look = INVARIANT if statement in KEPT else NOT_INVARIANT
        of_statement = drawn[drawn["statement"] == statement]
        spread = row + np.linspace(-0.22, 0.22, len(of_statement))
        stroke = {"markersize": 11, "markeredgewidth": 2.6, "color": look.ink}
        order = of_statement["order"].to_numpy()
        place = position(order.clip(min=LEAST_ORDER))
        shown = pd.Series(np.where(np.isnan(order), np.nan, place))
        for side, values in ((axes, shown), (right, of_statement["relative"])):
            look.each(side, values, spread, alpha=0.25)
            side.plot(values.median(), row, "|", **stroke)
        if statement in MOVED and (still := int((of_statement["order"] > 0.5).sum())):
            words = f"{still} of {len(of_statement)}"
            look.name(axes, 0.93, row, words, size=SMALL, ha="right")
            counted = f"{words}: quantities of order above 0.5\n"
        tiny = (of_statement["initial"] < TINY * of_statement["initial"].median()).to_numpy()
        right.plot(
            of_statement["relative"][tiny], spread[tiny], "o", color=look.ink, mfc="white", ms=5
        )
        hollow += of_statement["initial"][tiny].tolist()
        spot = {"transform": axes.get_yaxis_transform(), "ha": "right"}
        look.name(axes, -0.02, row, statement, **spot)
    ticks(axes.xaxis, (0, 1))
    axes.set_xlabel("convergence order")
    right.set_xlabel("drift / initial size")
    note = "smallest learning rate;\ndots: quantities, bar: median"
    if hollow:
        note += f"\nhollow: initial size {max(hollow):.1g}"
    QUIET.note(right, 0, 1.005, note, va="bottom")
    corner = 0.1 / picture.get_size_inches()
    QUIET.note(axes, *corner, counted + FREE_BLOCK, va="bottom", transform=picture.transFigure)
    return picture, drawn[[*SERIES, "statement", "order", "relative"]]


def growing(tables: Tables) -> pd.DataFrame:
    """Return the last layers, to which Theorem 2 applies, in the runs with the longest training.

    The output layer is excluded, and also networks whose risk never falls below loss(0) / n. The
    risk of all other networks shows that they classify all n examples correctly. The new columns
    are:

    - `top`: the largest squared singular value.
    - `remainder`: the sum of all other squared singular values.
    - `apart`: 1 − |⟨v, u⟩| of leading singular vectors of adjacent layers.
    - `longest`: the number of layers on the longest path from input to output. A residual block
      with a trained skip counts as two.

    Raises NoRows if no network remains.
    """
    rows = tail(tables)
    rows = rows[rows["separates"] & (rows["layer"] < rows["depth"])]
    rows = longest(nonempty(rows, "network that separates the data"))
    blocks = tables["lowrank"].query("kind == 'residual_free'").groupby("run")["layer"].nunique()
    return rows.assign(
        top=rows["operator_ratio"] * rows["frobenius"],
        remainder=(1 - rows["operator_ratio"]) * rows["frobenius"],
        apart=1 - rows["alignment"],
        longest=rows["depth"] + rows["run"].map(blocks).fillna(0),
    )


def last_dense(tables: Tables) -> pd.DataFrame:
    """Return the last fully connected layer before the output layer, in the longest runs.

    The rows and columns are those of `growing`. Raises NoRows if there are none.
    """
    rows = growing(tables).query("kind == 'dense' and bound == 1")
    return nonempty(rows[rows["layer"] == rows["depth"] - 1], "fully connected layer")


def say_what_grows(tables: Tables) -> str:
    """Return the headline of figure `what-grows`: one singular value grows, the others do not.

    The sentence has no numbers, so the tables are not read.
    """
    return (
        "In each last layer one singular value grows like a power of log t; the others keep their"
        " size"
    )


MARKS = "|  bound of Eq. (14)\n┊  trivial bound"
"""Legend of the panel of ratios."""


def draw_what_grows(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `what-grows`: how the singular values of the last layers change in training.

    - (a) squared singular values against time.
    - (b) the ratio ‖W‖₂² / ‖W‖² before and after training, with its bounds.

    Returns the picture, and the drawn numbers of both panels with the column `panel`.
    """
    parts = [
        (_growth, "squared singular values σ²", "time t (each tick: exponent × 100)"),
        (_bounds, "○ before, ● after training", "largest σ² / sum of all σ²"),
    ]
    return panels_in_pairs(tables, parts, height=4.6, gap=2.95, left=0.65, right=0.2)


def _growth(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw the largest squared singular value, and the sum of all others, against the time t.

    For the second half of training, the panel prints the power of log t with which the largest
    value grows. A dotted line has the theoretical power 2/L, and its L next to it.
    """
    rows = last_dense(tables).query("architecture in ('linear', 'residual_free')")
    rows = nonempty(rows[rows["log_flow_time"] > 1], "late record")
    rows = rows.assign(log10_time=rows["log_flow_time"] / log(10))
    axes.set(xscale="log", yscale="log")
    drawn, names = [], []
    for architecture, group in rows.groupby("architecture"):
        free = architecture == "residual_free"
        line = group.groupby("time")[["log10_time", *SQUARES]].median().reset_index()
        for column, look in SQUARES.items():
            style = {"marker": "", "linestyle": DASHED if free else "-"}
            look.line(axes, line["log10_time"], line[column], **style)
        second = line[line["time"] >= 0.5 * line["time"].max()]
        power = slopes(second.assign(replicate=0), "log10_time", "top", log=True)[0]
        x, law = second["log10_time"], 2 / group["longest"].iloc[0]
        theory = (x / x.iloc[-1]) ** law * line["top"].iloc[-1] / 1.5
        guide(axes, x, theory)
        at = float(x.iloc[0] ** 0.15 * x.iloc[-1] ** 0.85)
        layers = f"L = {group['longest'].iloc[0]:.0f}"
        QUIET.name_at(axes, x, theory, layers, at, away=(4, -8), size=SMALL)
        top, law = line["top"].iloc[-1], rf"$(\log t)^{{{power:.2f}}}$"
        if free:
            names.append((top, f"largest,\nresidual\nblocks:\n{law}", SQUARES["top"]))
        else:
            aside = {"xytext": (-17, -12), "textcoords": "offset points", "ha": "right"}
            SQUARES["top"].name(axes, x.iloc[-1], top, f"largest,\nlinear:\n{law}", **aside)
        drawn.append(line.assign(architecture=architecture, power=power))
        if not free:
            names.append((line["remainder"].iloc[-1], "sum of\nall others", SQUARES["remainder"]))
    name_ends(axes, names)
    law = r"$(\log t)^{2/L}$," + "\nL: layers of\nlongest path"
    key(axes, {law: QUIET}, loc="lower right", bbox_to_anchor=(1.05, 0.19))
    ticks_within(axes.yaxis, 1, 3, 10, 30, 100, 300, 1000)
    powers = [power for power in range(2, 20, 2) if 10.0**power < axes.get_xlim()[1]]
    labels = [f"$10^{{10^{{{power}}}}}$" for power in powers]
    ticks(axes.xaxis, [10.0**power for power in powers], labels)
    return pd.concat(drawn)


def _bounds(axes: Axes, tables: Tables) -> pd.DataFrame:
    """Draw a row for each layer that the claim judges: its ratio before and after training."""
    rows = telling(tables)
    end = ends(nonempty(rows[rows["separates"]], "layer to judge"))
    end = end.assign(size=end["channels"].where(end["kind"] == "conv", end["width"]))
    end = end.sort_values(["kind", "bound", "size"])
    axes.set_xscale("log")
    layers = end.groupby(["kind", "size", "bound", "layer"], sort=False)
    for row, ((kind, size, bound, layer), group) in enumerate(layers):
        color, y = KINDS[kind].color, [row] * len(group)
        Look(color, hollow=True).line(axes, group["start"], y, linestyle="", markersize=5)
        Look(color).line(axes, group["operator_ratio"], y, linestyle="", markersize=6)
        axes.vlines(bound, row - 0.35, row + 0.35, INK, linewidth=2.2)
        axes.vlines(group["trivial_bound"].iloc[0], row - 0.35, row + 0.35, INK, "dotted")
        text = f"{size:.0f} channels" if kind == "conv" else f"width {size:.0f}"
        text += f", layer {layer:.0f}"
        layout = {"transform": axes.get_yaxis_transform(), "ha": "right", "size": SMALL}
        KINDS[kind].name(axes, -0.03, row, text, **layout)
    axes.set(ylim=(row + 0.6, -0.75 - 0.35 * (row + 2)), yticks=[])
    QUIET.note(axes, 0.98, 1, MARKS, ha="right", va="top")
    for number, kind in enumerate(sorted(set(end["kind"]))):
        KINDS[kind].note(axes, 0.98, 0.85 - 0.07 * number, NAMES["kind"][kind].drawn, ha="right")
    ticks_within(axes.xaxis, 0.003, 0.01, 0.03, 0.1, 0.3, 1)
    return end


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run: the drift after training against the learning rate.

    A line is the median over networks of one quantity. Returns the picture, and a table with a row
    for each quantity and a column for each learning rate.
    """
    metrics = tables["metrics"]
    rows = metrics[(metrics["time"] == metrics["time"].max()) & (metrics["entries"] > 0)]
    keys = ["layer", "place", "pair", "item", "promised"]
    table = rows.pivot_table("drift", keys, "learning_rate", aggfunc="median", sort=False)
    picture, ((axes,),) = sheet(1, 1, height=3.8)
    axes.set(xscale="log", yscale="log")
    for (*_, promised), line in table.iterrows():
        look = INVARIANT if promised else NOT_INVARIANT
        look.line(axes, line.index, line, alpha=0.6, linewidth=1.2, markersize=4)
    title = "drift after training, median of networks; blue: invariants, orange: controls"
    panel(axes, "", title, "learning rate")
    return picture, table.add_prefix("drift at ").reset_index()


TITLE = "drift of invariants by learning rate"

CAPTION = (
    "Lines are the relative change of a quantity after training, medians of the networks. Blue"
    " quantities are constant by the paper, orange ones are controls."
)
"""Title and caption of the preview."""

HEADLINE = ["drift"]

FIGURES = [
    Drawing(
        "conserved",
        draw_drift,
        whose="our experiment",
        unread=("assumptions", "lowrank"),
        findings=[
            Finding(
                say_conserved, holds=["linear-layers", "vertex-wise", "layer-wise", "relu-limit"]
            )
        ],
        marks="lines: medians, bands: middle 90 %",
        caption=caption_drift,
        shows={
            "architecture": ["linear", "relu_then_linear", "random_graph"],
            "data": ["gaussian", "digits"],
        },
    ),
    Drawing(
        "first-order",
        draw_rates,
        whose="our experiment",
        unread=("assumptions", "lowrank"),
        findings=[
            Finding(
                say_orders,
                holds=["theorem-1", "vertex-wise", "edge-wise", "layer-wise", "relu-not-invariant"],
            )
        ],
        caption="The left panel shows the convergence order of each drift, its exponent in the"
        " learning rate: 0 if gradient flow moves the quantity, 1 if finite steps move it, and 4"
        " with Runge–Kutta steps. Orders that still change with the learning rate are not drawn."
        " The right panel shows the drift at the smallest learning rate. Blue quantities are"
        f" invariants, orange ones are controls. Some weights of the graphs are frozen. {D}"
        " compares adjacent layers.",
        shows={"data": ["gaussian", "digits"]},
    ),
    Drawing(
        "what-grows",
        draw_what_grows,
        whose="our experiment",
        unread=("metrics",),
        findings=[Finding(say_what_grows, holds=["weights-diverge", "rank-one", "alignment"])],
        marks="lines: medians",
        caption="(a) shows squared singular values σ² of the last inner layer by time t of gradient"
        " flow, in fully connected layers (solid) and with residual blocks (dashed). On its axis"
        " of log(log t), powers of log t are straight lines. (b) shows the largest σ² of a"
        " layer, divided by the sum of all, where the bound of Eq. (14) is not trivial. Purple"
        " rows are convolutions, green ones are residual blocks. All networks separate their"
        " data. A claim of the figure is about the alignment of adjacent layers.",
        shows={
            "architecture": ["linear", "relu_then_linear", "conv", "conv_free", "residual_free"],
            "data": ["gaussian", "digits"],
        },
    ),
]
