"""Drawings of study `rank_collapse`: Figures 1 and 2, and the preview of one run."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.data import CLASSES
from runner.papers.batch_norm_rank.learning import DEEP, END_OF_GRID, end_of_grid
from runner.papers.batch_norm_rank.looks import NORMALIZATIONS
from runner.papers.batch_norm_rank.rank_collapse.config import AUTHORS_RATES
from runner.papers.batch_norm_rank.rank_collapse.tables import rank_of_last_layer, trained
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import nonempty, select
from runner.results.spreads import spread
from runner.results.statistics import last_epoch
from runner.results.style import (
    DASHED,
    PLAIN,
    QUIET,
    SHADE,
    Look,
    level,
    name_ends,
    panel,
    sheet,
    ticks,
)

LABELS = {"batch": "batch norm", "none": "vanilla"}
LABELS["batch_no_mean"] = "batch norm, no\nmean subtraction"

MARKED = (1, 2, 4, 8, 16, 32, 3, 5, 9, 17, 33)
"""Depths with a tick: those between are too near to each other."""


def by_depth(tables: Tables) -> pd.DataFrame:
    """Mean rank before and accuracy after training, by depth and normalization, with the rate."""
    keys = ["depth", "normalization"]
    rank = rank_of_last_layer(tables["metrics"]).groupby(keys)[["matrix_rank", "rank_bound"]]
    ends = trained(tables).groupby([*keys, "learning_rate"], sort=False)
    columns = ["train_accuracy", "test_accuracy", "train_loss"]
    return ends[columns].mean().reset_index().merge(rank.mean(), on=keys)


def say_rates(tables: Tables) -> str:
    """Panels and marks of figure 1, whose protocol it is, and the rate of each depth."""
    chosen = []
    offered = tables["selection"]["learning_rate"].unique() if "selection" in tables else []
    for normalization, rows in by_depth(tables).groupby("normalization", sort=False):
        by_rate = rows.sort_values("depth").groupby("learning_rate", sort=False)["depth"]
        words = [
            f"{rate:g}{END_OF_GRID[end_of_grid(rate, offered)]} at L = {', '.join(map(str, of))}"
            for rate, of in by_rate
        ]
        chosen.append(f"{LABELS[normalization]} {'; '.join(words)}")
    if (tables["training"]["selected_on"] == AUTHORS_RATES).any():
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
        " accuracy of chance. Lines are means over the replicates, dots single replicates; shaded:"
        f" the depths above {DEEP}, of which the paper speaks. {how} {'. '.join(chosen)}."
    )


def say_collapse(tables: Tables) -> str:
    """Where rank and accuracy of the deepest vanilla networks end."""
    vanilla = select(by_depth(tables), normalization="none").sort_values("depth")
    rank = nonempty(vanilla[vanilla["depth"] > DEEP], "deep networks")["matrix_rank"].iloc[-1]
    return (
        f"Without batch norm the rank falls to {rank:.0f} with depth, and networks of more than"
        f" {DEEP} layers do not learn; with batch norm both stay high"
    )


def _by_depth(
    axes: Axes, rows: pd.DataFrame, column: str, reference: float, text: str
) -> list[tuple[float, str, Look]]:
    """Draw every replicate as a dot, the mean as a line; shaded is what the paper speaks of.

    Returns where lines end: height, name, look.
    """
    depths, ends = sorted(rows["depth"].unique()), []
    for kind, of in rows.groupby("normalization"):
        mean, look = of.groupby("depth")[column].mean(), NORMALIZATIONS[kind]
        look.each(axes, of["depth"], of[column])
        look.line(axes, mean.index, mean)
        ends.append((mean.iloc[-1], LABELS[kind], look))
    level(axes, reference, text)
    last = 1.12 * depths[-1]
    axes.set(xscale="log", xlim=(0.9 * depths[0], last), ylim=(0, None))
    axes.axvspan(min(DEEP, last), last, color=SHADE, linewidth=0, zorder=0)
    ticks(axes.xaxis, [depth for depth in depths if depth in MARKED] or depths)
    return ends


def draw_by_depth(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 1: rank and r of the last layer before training, accuracy after it, by depth."""
    start, ends = rank_of_last_layer(tables["metrics"]), trained(tables)
    width, epochs = start["width"].iloc[0], ends["epoch"].max()
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.6, right=1.05)
    _by_depth(left, start, "matrix_rank", width**0.5, "√d")
    _by_depth(middle, start, "rank_bound", 1, "1")
    name_ends(right, _by_depth(right, ends, "train_accuracy", 1 / CLASSES, "chance"))
    ticks(left.yaxis, [0, width / 4, width / 2, 3 * width / 4, width])
    QUIET.note(left, 0.835, 0.5, f"deeper\nthan {DEEP}", ha="center")
    panel(left, "a", "rank before training", "depth L")
    panel(middle, "b", "its lower bound r", "depth L")
    panel(right, "c", f"accuracy, epoch {epochs}", "depth L")
    return picture, by_depth(tables)


def say_layers(tables: Tables) -> str:
    """Say what ranks end at."""
    last = rank_of_last_layer(tables["metrics"])
    vanilla = select(last, normalization="none")["matrix_rank"].max()
    lost = "1" if vanilla < 2 else f"1 or {vanilla:.0f}"
    return (
        f"Without batch norm the rank falls to {lost}, in double precision only later; with batch"
        " norm it stays above √d"
    )


def draw_by_layer(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2: rank against depth for Gaussian inputs, one panel for each activation.

    Bold in single precision, thin and dashed in double.
    """
    metrics = tables["metrics"]
    keys = ["activation", "dtype", "normalization", "layer"]
    drawn = spread(metrics[metrics["layer"] > 0], keys, ["matrix_rank", "rank_bound"])
    width, last = metrics["width"].iloc[0], max(10, drawn["layer"].max())
    strokes = {"float32": {"linewidth": 3.2}, "float64": {"linewidth": 1.3, "linestyle": DASHED}}
    picture, (panels,) = sheet(1, 2, sharey=True, gap=1.2, right=1.1)
    PLAIN.note(panels[1], 0.04, 0.12, "thick: single precision\nbroken: double")
    for axes, letter, name in zip(panels, "ab", ("linear", "ReLU"), strict=True):
        axes.set(xscale="log", yscale="log", xlim=(1, last), ylim=(0.85, 1.2 * width))
        level(axes, width**0.5, "√d", above=False)
        of_name, ends = drawn[drawn["activation"] == name.lower()], {}
        for (precision, kind), rows in of_name.groupby(["dtype", "normalization"]):
            look = NORMALIZATIONS[kind]
            look.band(axes, rows["layer"], rows["matrix_rank_low"], rows["matrix_rank_high"])
            look.line(axes, rows["layer"], rows["matrix_rank"], marker="", **strokes[precision])
            ends[kind] = rows["matrix_rank"].iloc[-1], LABELS[kind], look
        name_ends(axes, list(ends.values()))
        ticks(axes.xaxis, [depth for depth in (1, 10, 100, 1000, 10000) if depth <= last])
        ticks(axes.yaxis, [2**power for power in range(16) if 2**power <= width])
        panel(axes, letter, f"rank, {name} networks", "layer")
    return picture, drawn


LOOKED_AT = {
    "matrix_rank": ("metrics", "layer", "rank before training"),
    "rank_bound": ("metrics", "layer", "r"),
    "train_accuracy": ("training", "epoch", "training accuracy"),
}
"""Columns of the preview: table, what they are drawn against, title."""


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Preview of one run: rank and r by layer before training, and accuracy by epoch."""
    last = rank_of_last_layer(tables["metrics"])
    picture, (panels,) = sheet(1, 3, height=3.2, gap=0.7)
    for axes, letter, column in zip(panels, "abc", LOOKED_AT, strict=True):
        table, x, title = LOOKED_AT[column]
        panel(axes, letter, title, x)
        with or_empty(axes):
            drawn = spread(tables[table], ["normalization", x], [column])
            for kind, rows in drawn.groupby("normalization", sort=False):
                look = NORMALIZATIONS[kind]
                look.band(axes, rows[x], rows[f"{column}_low"], rows[f"{column}_high"])
                look.line(axes, rows[x], rows[column], marker="", label=LABELS[kind])
            axes.set_ylim(0, None)
    panels[0].legend()
    ranks = ["matrix_rank", "soft_rank", "rank_bound"]
    summary = last.groupby("normalization", sort=False)[ranks].mean()
    if "training" in tables:
        columns = ["learning_rate", "train_loss", "train_accuracy", "test_accuracy"]
        ends = last_epoch(tables["training"]).groupby("normalization")
        summary = summary.join(ends[columns].mean())
    return picture, summary.reset_index()


LOOKS = NORMALIZATIONS
"""Colours in the picture of a sweep."""

HEADLINE = ["matrix_rank", "soft_rank", "rank_bound", "test_accuracy"]

FIGURES = [
    Drawing(
        "rank-fig1",
        draw_by_depth,
        whose="as in the paper, with r",
        findings=[
            Finding(
                say_collapse,
                holds=[
                    "vanilla-rank-collapses",
                    "batch-norm-keeps-rank",
                    "vanilla-cannot-learn",
                    "batch-norm-loses-little",
                ],
            )
        ],
        caption=say_rates,
        shows={"normalization": ["none", "batch"]},
    ),
    Drawing(
        "rank-fig2",
        draw_by_layer,
        whose="as in the paper, in two precisions",
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
