"""Drawings of paper C's figures and the quick look of its study."""

from math import log

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from runner.papers.training_invariances.invariances.items import ITEMS
from runner.papers.training_invariances.invariances.tables import (
    SERIES,
    Choice,
    final,
    item,
    part,
    power,
    separating,
    tail,
    unlearned,
    unrolled,
    variant,
)
from runner.papers.training_invariances.looks import INVARIANT, KINDS, NOT_INVARIANT
from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.rows import NoRows, nonempty
from runner.results.style import (
    DASHED,
    INK,
    QUIET,
    SHADE,
    SMALL,
    Look,
    guide,
    panel,
    sheet,
    ticks,
)

MOVES = "ReLU layers: D\nLemma 4"
"""What the paper does not promise, of those that figure 1 shows."""

SHOWN: dict[str, Choice] = {
    "linear layers: D\nTheorem 1": part("full", linear=True),
    "one ReLU neuron\nLemma 2, (4)": part("diagonal", linear=False),
    "two ReLU neurons\nLemma 2, (5)": lambda r: part("active", False)(r) | part("mixed", False)(r),
    "norms of layers\nLemma 3": part("layer"),
    MOVES: part("full", linear=False, promised=False),
}
"""The panels of figure 1: a statement of the paper, and the rows that it speaks of."""


def moved(tables: Tables) -> pd.DataFrame:
    """How far each quantity has moved, relative to its size, behind the start; without the networks
    that are small enough to list their paths."""
    rows = tables["metrics"]
    rows = rows[(rows["time"] > 0) & (rows["entries"] > 0) & (rows["initial"] > 0)]
    rows = nonempty(rows[~rows["run"].isin(unrolled(tables))], "quantity behind the start")
    return rows.assign(moved=rows["drift"] / rows["initial"])


def say_conserved(tables: Tables) -> str:
    """How far D of ReLU layers has moved at the end, and everything else."""
    rows = moved(tables)
    end = rows[rows["time"] == rows["time"].max()]
    end = end[end["learning_rate"] == end["learning_rate"].min()]
    relu = nonempty(end[SHOWN[MOVES](end)], "ReLU layers")["moved"]
    kept = nonempty(end[end["promised"]], "promised invariant")["moved"]
    return (
        f"What the paper says is conserved stays to within {kept.max():.1g} of its size; D of ReLU"
        f" layers, which it does not, moves by {relu.min():.2f} to {relu.max():.2f}"
    )


def draw_drift(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 1: drift over time at two rates, a panel for each statement."""
    rows = moved(tables)
    fine, coarse = rows["learning_rate"].min(), rows["learning_rate"].max()
    rates = {coarse: (0.16, 1.2, DASHED), fine: (0.32, 2.4, "-")}
    options = {"sharey": True, "sharex": True, "left": 0.9}
    picture, (panels,) = sheet(1, len(SHOWN), height=3.55, top=0.6, gap=0.22, **options)
    drawn = []
    for axes, (title, choose) in zip(panels, SHOWN.items(), strict=True):
        look, own = NOT_INVARIANT if title == MOVES else INVARIANT, rows[choose(rows)]
        axes.set_yscale("log")
        for rate, (alpha, width, dashes) in rates.items():
            at_rate = own[own["learning_rate"] == rate].groupby("time")["moved"]
            spread = at_rate.quantile([0.05, 0.5, 0.95]).unstack()
            if spread.empty:
                continue
            edges = {"color": look.color, "alpha": alpha, "linewidth": 0}
            axes.fill_between(spread.index, spread[0.05], spread[0.95], **edges)
            plain = {"marker": "", "linestyle": dashes, "linewidth": width}
            look.line(axes, spread.index, spread[0.5], **plain)
            about = {"statement": " ".join(title.split("\n")), "learning_rate": rate}
            drawn.append(spread.assign(**about).reset_index())
        for line, height in zip(title.split("\n"), (21, 6), strict=True):
            place = {"xycoords": "axes fraction", "textcoords": "offset points"}
            color = look.ink if title == MOVES else INK
            axes.annotate(line, (0, 1), (0, height), color=color, size=SMALL, **place)
        axes.tick_params(left=axes is panels[0])
        axes.spines["left"].set_visible(axes is panels[0])
    values = rows.loc[rows["moved"] > 0, "moved"]
    low = max(1e-12, values.quantile(0.02) / 3) if len(values) else 1e-6
    panels[0].set(ylim=(low, 6), xlim=(0, rows["time"].max()))
    powers = {1e-12: "$10^{-12}$", 1e-9: "$10^{-9}$", 1e-6: "$10^{-6}$", 1e-4: "$10^{-4}$"}
    powers |= {1e-2: "0.01", 1: "1"}
    powers = {y: text for y, text in powers.items() if y >= low}
    ticks(panels[0].yaxis, powers, list(powers.values()))
    panels[0].set_ylabel("‖D(t) − D(0)‖ / ‖D(0)‖")
    panels[2].set_xlabel("time t of the flow")
    _name_rates(panels, drawn, fine, coarse)
    return picture, pd.concat(drawn, ignore_index=True) if drawn else rows


def _name_rates(panels: np.ndarray, drawn: list[pd.DataFrame], fine: float, coarse: float) -> None:
    """The two rates where they lie apart, and that they do not where D moves."""
    place = {"ha": "center", "size": SMALL}
    for axes, title in ((panels[0], next(iter(SHOWN))), (panels[-1], MOVES)):
        own = [d for d in drawn if d["statement"].iloc[0] == " ".join(title.split("\n"))]
        of = {d["learning_rate"].iloc[0]: d for d in own}
        if fine not in of or coarse not in of or fine == coarse:
            continue
        middle = of[fine]["time"].median()
        if title == MOVES:
            text, away = "the same at\nboth rates", (0.0, -22.0)
            x, y = of[fine]["time"], of[fine][0.05]
            NOT_INVARIANT.name_at(axes, x, y, text, middle, away, **place)
        else:
            for rate, end, away in ((coarse, 0.95, 12.0), (fine, 0.05, -12.0)):
                look = QUIET if rate == coarse else INVARIANT
                x, y = of[rate]["time"], of[rate][end]
                look.name_at(axes, x, y, f"rate {rate:g}", middle, (0.0, away), **place)


Line = tuple[Choice, str, Look]
"""Which rows, the integrator, and the look of a line of figure 2."""


def statements() -> dict[str, Line]:
    """The lines of figure 2, from above."""

    def plain(choose: Choice) -> Choice:
        return lambda rows: choose(rows) & (variant(rows) == "")

    def promised(name: str) -> Choice:
        return lambda rows: rows["promised"] & variant(rows).str.contains(name)

    def kept(choose: Choice, integrator: str = "euler") -> Line:
        return choose, integrator, INVARIANT

    def lost(choose: Choice) -> Line:
        return choose, "euler", NOT_INVARIANT

    items = {f"Theorem 1.{i.number}: {i.title}": kept(plain(item(i.number))) for i in ITEMS}
    return items | {
        "Lemma 2: one ReLU neuron": kept(plain(part("diagonal", linear=False))),
        "Lemma 2: two, always on": kept(plain(part("active", linear=False))),
        "Lemma 2: two, one pattern": kept(plain(part("mixed", linear=False))),
        "Lemma 3: norms of layers": kept(plain(part("layer"))),
        "all of these, leaky ReLU": kept(promised("leaky")),
        "all of these, other losses": kept(promised("exponential|squared")),
        "all of these, with biases": kept(promised("biases")),
        "Theorem 1.1, Runge–Kutta": kept(part("full", linear=True), "rk4"),
        "ReLU layers: D (Lemma 4)": lost(plain(part("full", linear=False, promised=False))),
        "identity skip: diagonal of D": lost(unlearned("identity", "diagonal")),
        "diagonal skip: D": lost(unlearned("diagonal", "full")),
    }


def fitted_orders(tables: Tables) -> pd.DataFrame:
    """The order of every quantity of every replicate, with the statement it belongs to.

    As of `orders`, which takes one quantity after the other; those of a statement are many.
    """
    found = []
    at_end = {each: final(tables["metrics"], each) for each in ("euler", "rk4")}
    for statement, (choose, integrator, _) in statements().items():
        rows = at_end[integrator]
        rows = rows[choose(rows) & (rows["entries"] > 0)] if len(rows) else rows
        rows = rows.sort_values("learning_rate")
        rows = rows.assign(rate=rows.groupby(SERIES).cumcount()).query("rate < 3")
        wide = rows.pivot(index=SERIES, columns="rate", values=["learning_rate", "drift"])
        if wide.shape[1] < 6:
            continue
        wide = wide.dropna()
        h, drift = (wide[name].to_numpy().T for name in ("learning_rate", "drift"))
        with np.errstate(all="ignore"):
            fine, coarse = np.diff(np.log(drift), axis=0) / np.diff(np.log(h), axis=0)
            order = fine + (fine - coarse) * h[0] / (h[1] - h[0])
        order = np.where((drift > 0).all(axis=0), order, np.inf)
        found.append(wide.index.to_frame(index=False).assign(order=order, statement=statement))
    if not found:
        raise NoRows("no quantity at three rates")
    return nonempty(pd.concat(found, ignore_index=True), "quantity at three rates")


def say_orders(tables: Tables) -> str:
    """The orders of Theorem 1, and that of ReLU layers."""
    found = fitted_orders(tables).groupby("statement")["order"].median()
    items = found[[name for name in found.index if name.startswith("Theorem 1.")]]
    items = items[~items.index.str.contains("Runge")]
    relu = found.get("ReLU layers: D (Lemma 4)", np.nan)
    ends = list(dict.fromkeys(f"{order:.2f}" for order in (items.min(), items.max())))
    return (
        f"In all {len(items)} items of Theorem 1 the drift vanishes with the rate (order"
        f" {' to '.join(ends)}): only the step causes it; D of ReLU layers moves at rate zero as"
        f" well (order {relu:z.2f})"
    )


def draw_rates(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2: the order of the drift in the rate, one line for each statement."""
    drawn = fitted_orders(tables)
    names = statements()
    picture, ((axes,),) = sheet(1, 1, height=6.2, left=2.6, top=0.35)
    low, high = -0.6, 4.5
    axes.set(xlim=(low, high + 0.6), ylim=(len(names) - 0.4, -0.8))
    axes.axvspan(high + 0.12, high + 0.48, color=SHADE, linewidth=0, zorder=0)
    axes.spines["bottom"].set_bounds(low, high)
    axes.spines["left"].set_visible(False)
    for x, text in ((0, "moves"), (1, "conserved"), (4, "conserved,\nfourth order")):
        axes.axvline(x, color=QUIET.color, linestyle=QUIET.dashes, linewidth=1.2, zorder=1)
        place = {"transform": axes.get_xaxis_transform(), "va": "bottom", "size": SMALL}
        QUIET.name(axes, x, 1.005, text, linespacing=1.0, **place)
    for row, (statement, (_, _, look)) in enumerate(names.items()):
        own = drawn.loc[drawn["statement"] == statement, "order"]
        shown = np.where(own > high, high + 0.3, own.clip(lower=low))
        spread = np.linspace(-0.22, 0.22, len(own))
        look.each(axes, shown, row + spread, alpha=0.25)
        if len(own):
            stroke = {"markersize": 13, "markeredgewidth": 2.6, "color": look.ink}
            axes.plot([np.median(shown)], [row], "|", **stroke)
        place = {"transform": axes.get_yaxis_transform(), "ha": "right"}
        look.name(axes, -0.02, row, statement, **place)
    axes.set_yticks([])
    ticks(axes.xaxis, [0, 1, 2, 3, 4, high + 0.3], ["0", "1", "2", "3", "4", "none"])
    axes.set_xlabel("order of the drift in the learning rate, as that goes to zero")
    return picture, drawn


def collapsing(tables: Tables) -> pd.DataFrame:
    """The layers of Theorem 2 through time, with `rest`, what is left beside the largest value, and
    `apart`, how far adjacent layers are from being aligned; at the usual gain."""
    rows = separating(tail(tables))
    rows = nonempty(rows[rows["time"] > 0], "network that separates the data")
    rows = rows[rows["gain"] == rows["gain"].mode().iloc[0]]
    return rows.assign(
        rest=1 - rows["operator_ratio"],
        apart=1 - rows["alignment"],
        log10_time=rows["log_flow_time"] / log(10),
    )


def say_rank_one(tables: Tables) -> str:
    """The power with which what is left falls, and how small it is at the end."""
    rows = collapsing(tables)
    dense = rows[(rows["bound"] == 1) & (rows["rest"] > 0)]
    dense = nonempty(dense, "fully connected layer")
    end = dense[dense["time"] == dense.groupby("run")["time"].transform("max")]
    late = dense[dense["frobenius"] >= end["frobenius"].median() ** 0.5]
    powers = power(nonempty(late, "late record"), "rest")
    return (
        "As the norms diverge the last fully connected layers tend to rank one: what is left beside"
        f" the largest singular value falls as the power {powers.median():.2f} of ‖W‖², to"
        f" {100 * end['rest'].median():.1g} %"
    )


def draw_low_rank(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 3: what is left beside the largest value against the norm, and alignment over time."""
    rows = collapsing(tables)
    place = ["data", "architecture", "kind", "gain", "layer"]
    columns = ["rest", "apart", "bound", "finite_bound", "log10_time", "frobenius"]
    drawn = rows.groupby([*place, "time"], as_index=False)[columns].median()
    picture, ((left, right),) = sheet(gap=0.8, left=0.85, right=0.3)
    left.set(xscale="log", yscale="log")
    right.set_yscale("log")
    names = {"dense": "fully connected", "residual_free": "free residual", "conv": "convolution"}
    last = drawn[drawn["layer"] < rows["depth"].max()] if "depth" in rows else drawn
    for kind in names:
        for _, line in last[last["kind"] == kind].groupby(place):
            line = line.sort_values("time")
            KINDS[kind].line(left, line["frobenius"], line["rest"], alpha=0.8)
            shown = line[line["log10_time"] > 0]
            KINDS[kind].line(right, shown["log10_time"], shown["apart"], alpha=0.8)
    dense = last[(last["kind"] == "dense") & (last["rest"] > 0)]
    if len(dense):
        x = np.array([dense["frobenius"].median(), dense["frobenius"].max()])
        top = (dense["frobenius"] * dense["rest"]).max()
        guide(left, x, 2.2 * top / x)
        QUIET.name_at(left, x, 2.2 * top / x, "slope −1", float(np.sqrt(x.prod())), (8, 9))
    spot = {"transform": right.transAxes, "ha": "left", "size": SMALL}
    there = [kind for kind in names if kind in set(last["kind"])]
    for number, kind in enumerate(there):
        height = 0.06 + 0.06 * (len(there) - number)
        KINDS[kind].line(left, [0.04, 0.12], [height] * 2, transform=left.transAxes, linewidth=2.2)
        KINDS[kind].name(left, 0.14, height, names[kind], **spot | {"transform": left.transAxes})
    late = drawn["log10_time"].replace([np.inf, -np.inf], np.nan).max()
    if np.isfinite(late) and late > 20:
        right.set_xscale("symlog", linthresh=10)
        powers = {0: "0", 10: "10", 1e3: "10³", 1e5: "10⁵", 1e7: "10⁷", 1e9: "10⁹"}
        powers = {x: text for x, text in powers.items() if x <= late}
        ticks(right.xaxis, powers, list(powers.values()))
    panel(left, "a", "1 − ‖W‖₂² / ‖W‖²", "squared norm ‖W‖²")
    panel(right, "b", "1 − alignment of neighbours", "log₁₀ of the time of the flow")
    return picture, drawn


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the drift of each place at the end against the rate."""
    metrics = tables["metrics"]
    rows = metrics[(metrics["time"] == metrics["time"].max()) & (metrics["entries"] > 0)]
    place = ["layer", "place", "pair", "item", "promised"]
    table = rows.pivot_table(
        index=place, columns="learning_rate", values="drift", aggfunc="median", sort=False
    )
    picture, ((axes,),) = sheet(1, 1, height=3.8)
    axes.set(xscale="log", yscale="log")
    for index, line in table.iterrows():
        look = INVARIANT if index[4] else NOT_INVARIANT
        look.line(axes, line.index, line, alpha=0.6, linewidth=1.2, markersize=4)
    spot = {"transform": axes.transAxes, "ha": "left"}
    INVARIANT.name(axes, 0.02, 0.95, "the paper says it is invariant", **spot)
    NOT_INVARIANT.name(axes, 0.02, 0.88, "it does not", **spot)
    first = metrics.iloc[0]
    panel(axes, "a", f"drift at the end, {first['architecture']}, {first['data']}", "rate")
    table.columns = [f"drift at {rate:g}" for rate in table.columns]
    return picture, table.reset_index()


HEADLINE = ["drift"]

FIGURES = [
    Drawing(
        "invariances-fig1",
        draw_drift,
        whose="ours",
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
        " smaller rate.",
        shows={"architecture": ["linear", "relu_then_linear"], "data": ["gaussian", "digits"]},
    ),
    Drawing(
        "invariances-fig2",
        draw_rates,
        whose="ours",
        findings=[
            Finding(say_orders, holds=[*(f"item-{i.number}" for i in ITEMS), "relu-not-invariant"])
        ],
        caption="The order with which the drift at the end of gradient descent goes to zero with"
        " the learning rate, a line for each statement: 1 where the gradient flow conserves the"
        " quantity and only the error of a step moves it, 4 with Runge–Kutta steps; 0 where the"
        " flow itself moves it. Dots are single quantities of single replicates, strokes the"
        " medians. On the rail: no drift at all. Blue is what the paper says is invariant,"
        " vermilion what it says is not.",
        shows={"data": ["gaussian", "digits"]},
    ),
    Drawing(
        "invariances-fig3",
        draw_low_rank,
        whose="ours",
        findings=[Finding(say_rank_one, holds=["weights-diverge", "rank-one", "alignment"])],
        caption="Layers of networks that separate their data, under gradient flow. (a) What is"
        " left of the squared norm of a layer beside its largest singular value, against the"
        " squared norm; dotted: slope −1. (b) How far adjacent layers are from being aligned,"
        " against the logarithm of the flow's own time. Lines are medians over the replicates, one"
        " for each layer, architecture and dataset. Solid blue: the last fully connected layers,"
        " which tend to rank one; dashed green: free residual blocks; vermilion: convolutions, for"
        " which the paper has weaker bounds.",
        shows={
            "architecture": ["linear", "relu_then_linear", "conv", "residual_free", "mixed"],
            "data": ["gaussian", "digits"],
        },
    ),
]
