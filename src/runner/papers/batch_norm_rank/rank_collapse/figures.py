"""Drawings of study `rank_collapse`: Figures 1 and 2, and the quick look at one run."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.data import CLASSES
from runner.papers.batch_norm_rank.learning import DEEP, END_OF_GRID, LEARNED, end_of_grid
from runner.papers.batch_norm_rank.looks import NORMALIZATIONS
from runner.papers.batch_norm_rank.rank_collapse.tables import rank_of_last_layer, trained
from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.rows import nonempty, select
from runner.results.spreads import spread
from runner.results.statistics import last_epoch, summarize
from runner.results.style import DASHED, PLAIN, QUIET, SHADE, SMALL, level, panel, sheet, ticks

LABELS = {"batch": "batch norm", "none": "vanilla", "batch_no_mean": "batch norm without mean"}
SHOWN = ("batch", "none")
"""The curves of the paper."""

MARKED = (1, 2, 4, 8, 16, 32, 3, 5, 9, 17, 33)
"""Depths with a tick: those between are too near to each other."""

AUTHORS = "rates of the authors' code"
"""What `selected_on` says of `protocol=authors`."""


def by_depth(tables: Tables) -> pd.DataFrame:
    """Mean rank before and accuracy after training, by depth and normalization, with the rate."""
    keys = ["depth", "normalization"]
    rank = summarize(rank_of_last_layer(tables["metrics"]), keys, ["matrix_rank", "rank_bound"])
    columns = ["train_accuracy", "test_accuracy", "train_loss"]
    accuracy = summarize(trained(tables), [*keys, "learning_rate"], columns)
    return rank.merge(accuracy, on=keys)


def say_rates(tables: Tables) -> str:
    """Panels and marks of figure 1, whose protocol it is, and the rate of each depth."""
    chosen, offered = [], tables.get("selection", pd.DataFrame({"learning_rate": []}))
    offered = offered["learning_rate"].unique()
    for normalization, rows in by_depth(tables).groupby("normalization", sort=False):
        by_rate = rows.sort_values("depth").groupby("learning_rate", sort=False)["depth"]
        words = [
            f"{rate:g}{END_OF_GRID[end_of_grid(rate, offered)]} at L = {', '.join(map(str, of))}"
            for rate, of in by_rate
        ]
        chosen.append(f"{LABELS[normalization]} {'; '.join(words)}")
    selected = tables["training"].get("selected_on", pd.Series(dtype=str))
    if (selected == AUTHORS).any():
        how = (
            "By the protocol of the authors' code: vanilla networks learn by SGD, those with batch"
            " norm by Adam; ranks are of the first minibatch, accuracies on 1000 training images by"
            " their own statistics. Rates, theirs:"
        )
    else:
        how = "Ranks are on N samples. Learning rates of SGD, chosen on separate replicates:"
    return (
        "(a) Numerical rank of the last hidden layer before training; dotted: the root of the width"
        " d. (b) Its lower bound r. (c) Training accuracy after the last epoch; dotted: the"
        " accuracy of a guess. Lines are means over the replicates, dots single replicates; shaded:"
        f" the depths above {DEEP}, of which the paper speaks. {how} {'. '.join(chosen)}."
    )


def say_collapse(tables: Tables) -> str:
    """That neither measure of rank alone tells which networks learn."""
    vanilla = select(by_depth(tables), normalization="none").sort_values("depth")
    learn = vanilla[(vanilla["depth"] <= DEEP) & (vanilla["train_accuracy"] > LEARNED)]
    learns = nonempty(learn, "vanilla network that learns").iloc[-1]
    fails = nonempty(vanilla[vanilla["depth"] > DEEP], "deep networks").iloc[0]
    return (
        f"Vanilla networks above {DEEP} layers do not learn; neither measure tells alone:"
        f" {fails['depth']} layers start at rank {fails['matrix_rank']:.0f}, and"
        f" {learns['depth']}, which learn ({learns['train_accuracy']:.2f}), at r ="
        f" {learns['rank_bound']:.2f}"
    )


def _by_depth(
    axes: Axes, rows: pd.DataFrame, column: str, top: float, reference: float, text: str
) -> None:
    """Every replicate as a dot, the mean as a line; shaded is what the paper speaks of."""
    depths = sorted(rows["depth"].unique())
    ends = (0.9 * depths[0], 1.12 * depths[-1])
    axes.set(xscale="log", xlim=ends, ylim=(0, 1.05 * top))
    axes.axvspan(min(DEEP, ends[1]), ends[1], color=SHADE, linewidth=0, zorder=0)
    level(axes, reference, text)
    for kind in SHOWN:
        of, look = rows[rows["normalization"] == kind], NORMALIZATIONS[kind]
        if len(of):
            mean = of.groupby("depth")[column].mean()
            look.each(axes, of["depth"], of[column])
            look.line(axes, mean.index, mean)
    ticks(axes.xaxis, [depth for depth in depths if depth in MARKED] or depths)


def draw_by_depth(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 1: rank and r of the last layer before training, accuracy after it, by depth."""
    start, ends = rank_of_last_layer(tables["metrics"]), trained(tables)
    start = nonempty(start[start["normalization"].isin(SHOWN)], "curve of the paper")
    width, epochs = start["width"].iloc[0], ends["epoch"].max()
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.6)
    _by_depth(left, start, "matrix_rank", width, width**0.5, "√d")
    r = 1.1 * max(2, start["rank_bound"].max())
    _by_depth(middle, start, "rank_bound", r, 1, "one")
    _by_depth(right, ends, "train_accuracy", 1, 1 / CLASSES, "a guess")
    ticks(left.yaxis, [0, width / 4, width / 2, 3 * width / 4, width])
    ticks(middle.yaxis, [1, *range(2, int(r) + 1, max(1, int(r) // 4))])
    ticks(right.yaxis, [0, 0.25, 0.5, 0.75, 1])
    norm, vanilla = (NORMALIZATIONS[kind] for kind in SHOWN)
    place = {"transform": right.transAxes, "linespacing": 1.1}
    norm.name(right, 0.8, 0.83, "batch\nnorm", **place)
    vanilla.name(right, 0.3, 0.5, LABELS["none"], **place)
    QUIET.name(left, 0.835, 0.5, f"above\n{DEEP}", transform=left.transAxes, linespacing=1.1)
    panel(left, "a", "rank before training", "depth L")
    panel(middle, "b", "r, its lower bound", "depth L")
    panel(right, "c", f"accuracy, {epochs} epochs", "depth L")
    return picture, by_depth(tables)


def by_layer(metrics: pd.DataFrame) -> pd.DataFrame:
    """Median rank of each layer from 1 on, with its range, by activation, dtype, normalization."""
    keys = ["activation", "dtype", "normalization", "layer"]
    return spread(metrics[metrics["layer"] > 0], keys, ["matrix_rank", "rank_bound"])


def _rank_panel(axes: Axes, drawn: pd.DataFrame, width: int) -> None:
    """Median and range by layer: bold in single precision, thin and dashed in double."""
    last = max(10, drawn["layer"].max())
    axes.set(xscale="log", yscale="log", xlim=(1, last), ylim=(0.85, 1.2 * width))
    level(axes, width**0.5, "√d", above=False)
    for kind in SHOWN:
        for precision, rows in drawn[drawn["normalization"] == kind].groupby("dtype"):
            look, double = NORMALIZATIONS[kind], precision == "float64"
            look.band(axes, rows["layer"], rows["matrix_rank_low"], rows["matrix_rank_high"])
            thin = {"width": 1.3, "dashes": DASHED} if double else {"width": 3.2}
            line = replace(look, marker="", **thin)
            line.line(axes, rows["layer"], rows["matrix_rank"], zorder=2 + double)
    ticks(axes.xaxis, [depth for depth in (1, 10, 100, 1000, 10000) if depth <= last])
    ticks(axes.yaxis, [2**power for power in range(16) if 2**power <= width])


def say_layers(tables: Tables) -> str:
    """What ranks end at, and where they settle."""
    metrics = tables["metrics"]
    last = spread(
        rank_of_last_layer(metrics), ["normalization", "activation", "width"], ["matrix_rank"]
    )
    vanilla = select(last, normalization="none")["matrix_rank_high"].max()
    norm = select(last, normalization="batch").set_index("activation")["matrix_rank"]
    lost = "1" if vanilla < 2 else f"1 or {vanilla:.0f}"
    return (
        f"Without batch norm the rank falls to {lost}, in double precision later; with it the rank"
        f" settles at {norm['linear']:.0f} (linear) and {norm['relu']:.0f} (ReLU), above"
        f" √d = {last['width'].iloc[0] ** 0.5:.1f}"
    )


def draw_by_layer(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2: rank against depth for Gaussian inputs, one panel for each activation."""
    metrics = tables["metrics"]
    drawn = by_layer(metrics)
    drawn = nonempty(drawn[drawn["normalization"].isin(SHOWN)], "curve of the paper")
    activations = [name for name in ("linear", "relu") if name in set(drawn["activation"])]
    width = metrics["width"].iloc[0]
    picture, (panels,) = sheet(1, max(2, len(activations)), sharey=True, right=0.4)
    for axes, letter, activation in zip(panels, "ab", activations, strict=False):
        rows = drawn[drawn["activation"] == activation]
        _rank_panel(axes, rows, width)
        name = {"linear": "linear", "relu": "ReLU"}[activation]
        of_width = f"rank, {name} networks of width {width}"
        panel(axes, letter, of_width if axes is panels[0] else f"the same, {name}", "layer")
        norm, vanilla = NORMALIZATIONS["batch"], NORMALIZATIONS["none"]
        settled = rows.loc[rows["normalization"] == "batch", "matrix_rank"]
        if len(settled):
            norm.name(axes, 2900, settled.iloc[-1] * (0.86 if activation == "relu" else 1.42),
                      "batch norm", ha="right")  # fmt: skip
        vanilla.name(axes, 95, 4.3, "vanilla", ha="right")
    PLAIN.name(panels[0], 14, 17, "single\nprecision", ha="right", size=SMALL)
    PLAIN.name(panels[0], 85, 23, "double precision", ha="left", size=SMALL)
    for axes in panels[len(activations) :]:
        axes.remove()
    return picture, drawn


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: rank and r by layer before training, and the training curves."""
    metrics, training = tables["metrics"], tables.get("training")
    ranks = summarize(metrics, ["normalization", "layer"], ["matrix_rank", "rank_bound"])
    picture, (panels,) = sheet(1, 2 if training is None else 3, height=3.2, gap=0.7, right=0.3)
    for kind, rows in ranks.groupby("normalization", sort=False):
        look = NORMALIZATIONS[kind]
        for axes, column in zip(panels, ("matrix_rank", "rank_bound"), strict=False):
            look.band(axes, rows["layer"], rows[f"{column}_low"], rows[f"{column}_high"])
            look.line(axes, rows["layer"], rows[column], marker="")
            look.name_at(axes, rows["layer"], rows[column], LABELS[kind], rows["layer"].median())
    for axes, letter, title in zip(panels, "ab", ("rank before training", "r"), strict=False):
        panel(axes, letter, title, "layer")
        axes.set_ylim(0, None)
        if metrics["layer"].max() > 64:
            axes.set_xscale("symlog", linthresh=1)
    last = rank_of_last_layer(metrics)
    summary = summarize(last, ["normalization"], ["matrix_rank", "soft_rank", "rank_bound"])
    if training is not None:
        means = summarize(training, ["normalization", "epoch"], ["train_accuracy"])
        for kind, rows in means.groupby("normalization", sort=False):
            NORMALIZATIONS[kind].line(panels[2], rows["epoch"], rows["train_accuracy"], marker="")
        panels[2].set_ylim(0, 1.03)
        panel(panels[2], "c", "training accuracy", "epoch")
        columns = ["learning_rate", "train_loss", "train_accuracy", "test_accuracy"]
        ends = summarize(last_epoch(training), ["normalization"], columns)
        summary = summary.merge(ends, on="normalization")
    shown = [c for c in summary.columns if not c.endswith(("_ci", "_low", "_high"))]
    return picture, summary[shown]


HEADLINE = ["matrix_rank", "soft_rank", "rank_bound", "test_accuracy"]

FIGURES = [
    Drawing(
        "rank-fig1",
        draw_by_depth,
        whose="as in the paper",
        findings=[
            Finding(
                say_collapse,
                holds=["vanilla-rank-collapses", "batch-norm-keeps-rank", "vanilla-cannot-learn"],
            )
        ],
        caption=say_rates,
        shows={"normalization": ["none", "batch"]},
    ),
    Drawing(
        "rank-fig2",
        draw_by_layer,
        whose="as in the paper",
        findings=[
            Finding(
                say_layers,
                holds=[
                    "linear-vanilla-rank-one",
                    "relu-vanilla-rank-one",
                    "linear-batch-norm-above-root",
                    "relu-batch-norm-above-root",
                ],
            )
        ],
        caption="Numerical rank of each hidden layer before training, (a) of linear and (b) of"
        " ReLU networks with Gaussian inputs. Bold lines: single precision; thin and dashed:"
        " double. Lines are medians over the replicates, bands their whole range; dotted: the root"
        " of the width d.",
        shows={"normalization": ["none", "batch"]},
    ),
]
