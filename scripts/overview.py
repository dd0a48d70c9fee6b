"""Draw the README's first picture: a panel with a finding of each paper, from the reference."""

from io import BytesIO
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from runner.commands.kept import read_csv, read_tables
from runner.core.errors import InputError
from runner.papers.batch_norm_rank.looks import NORMALIZATIONS
from runner.papers.norm_tuning.bn_only import tables as tuned
from runner.papers.norm_tuning.looks import METHODS
from runner.papers.training_invariances.invariances.tables import unrolled
from runner.results.claims import Tables
from runner.results.formats import drawn_in
from runner.results.style import (
    BLUE,
    GREY,
    PALE,
    VERMILION,
    Look,
    panel,
    rail,
    sheet,
    ticks,
)

FLOOR, TOP = 1e-4, 20.0
"""The ends of the axis of errors / variance. Lower errors are drawn as zero."""
BATCH_NORM, PLAIN = NORMALIZATIONS["batch"], NORMALIZATIONS["none"]
LINEAR, RELU = Look(BLUE, ""), Look(VERMILION, "")
KEPT, OTHERS = Look(BLUE, ""), Look(GREY)
BOLD = {"weight": "bold"}


def paper_a(axes: Axes, tables: Tables) -> None:
    """Draw figure 4, right panel: the error against the width of the frozen network."""
    position = rail(axes, FLOOR, TOP)
    rows = tables["metrics"].query("target_width == 25")
    for method, series, x, y, name in (
        ("sgd", tuned.SGD, 330, 0.035, "SGD"),
        ("teacher_construction", tuned.TEACHER, 345, 9, "construction"),
    ):
        median = rows[rows["method"] == method].groupby("width")["relative_mse"].median()
        METHODS[series].line(axes, median.index, position(median))
        METHODS[series].name(axes, x, y, name, **BOLD)
    METHODS[tuned.TEACHER].name(axes, 600, float(position(0.0)), "exact from d² on", ha="right")
    ticks(axes.yaxis, [0.001, 0.01, 0.1, 1, 10])
    ticks(axes.xaxis, [25, 200, 400, 625], ["25", "200", "400", "d² = 625"])
    panel(
        axes,
        "A",
        "exact from d² on; SGD from γ = 1 is not",
        "width m of the frozen network, d = 25",
    )
    axes.set(xlim=(0, 725), ylabel="error / variance")


def paper_b(axes: Axes, tables: Tables) -> None:
    """Draw figure 1, left panel: the rank of the last hidden layer against the depth."""
    rows = tables["metrics"].query("layer == depth")
    for kind, look, name, x, y in (
        ("batch", BATCH_NORM, "with batch norm", 13, 107),
        ("none", PLAIN, "without", 2.6, 64),
    ):
        mean = rows[rows["normalization"] == kind].groupby("depth")["matrix_rank"].mean()
        look.line(axes, mean.index, mean)
        look.name(axes, x, y, name, **BOLD)
    panel(axes, "B", "batch norm keeps the rank at depth", "depth")
    axes.set(xscale="log", ylim=(-4, 138), ylabel="rank before training")
    ticks(axes.yaxis, [0, 64, 128])
    ticks(axes.xaxis, [1, 3, 5, 9, 17, 33])


def paper_c(axes: Axes, tables: Tables) -> None:
    """Draw the drift of the invariants of pairs of layers (Lemmas 1 to 4).

    Paper C calls the invariants D. In the picture, D is the name of a panel.
    """
    rows = tables["metrics"].query("time > 0 and entries > 0")
    smallest = rows["learning_rate"] == rows["learning_rate"].min()
    rows = rows[~rows["run"].isin(unrolled(tables)) & smallest]
    rows = rows.assign(moved=rows["drift"] / rows["initial"])
    for linear, look, name, y in ((False, RELU, "ReLU", 0.009), (True, LINEAR, "linear", 9e-4)):
        pairs = (rows["pair"] == "full") & (rows["linear"] == linear) & (rows["promised"] == linear)
        moved = rows[pairs].groupby("time")["moved"].quantile([0.05, 0.5, 0.95]).unstack()
        look.band(axes, moved.index, moved[0.05], moved[0.95])
        look.line(axes, moved.index, moved[0.5])
        look.name(axes, 10, y, f"{name} layers", **BOLD)
    OTHERS.note(axes, 0.98, 0.125, "linear: error of finite steps\nbands: middle 90 %", ha="right")
    panel(axes, "C", "conserved by linear, not by ReLU layers", "time of gradient flow")
    invariant = r"$W_{2}^{T} W_{2} - W_{1} W_{1}^{T}$"
    axes.set(yscale="log", ylim=(3e-7, 1), xlim=(0, 20), ylabel=f"relative change of\n{invariant}")
    ticks(axes.yaxis, [1e-6, 1e-4, 0.01, 1], ["$10^{-6}$", "$10^{-4}$", "0.01", "1"])
    ticks(axes.xaxis, [0, 5, 10, 15, 20])


def paper_d(axes: Axes, tables: Tables) -> None:
    """Draw figure 1, right panel: the singular values of the weights of one minimum, by layer."""
    rows = tables["spectrum"].query("recipe == 'minimum' and depth == 30 and replicate == 0")
    values: pd.DataFrame = rows.pivot(index="layer", columns="index", values="singular_value")
    third = values.fillna(0)[3]
    axes.fill_between(values.index, third, color=PALE, edgecolor=GREY, linewidth=0.8)
    for index in (1, 2):
        KEPT.line(axes, values.index, values[index])
    KEPT.name(axes, 15, 1.25, "two near 1", **BOLD)
    OTHERS.name(axes, 15, 0.11, "all others: ≈ 0 inside")
    panel(axes, "D", "deep solutions have the task's rank, 2", "layer of a network of depth 30")
    axes.set(ylim=(0, 1.7), xlim=(0.5, 30.5), ylabel="singular values")
    ticks(axes.yaxis, [0, 0.5, 1, 1.5])
    ticks(axes.xaxis, [1, 10, 20, 30])


PANELS = {
    paper_a: ("quick/fig4", ["exact", "constructions-beat-sgd"]),
    paper_b: ("paper/rank-fig1", ["batch-norm-keeps-rank", "vanilla-rank-collapses"]),
    paper_c: ("quick/conserved", ["linear-layers", "relu-limit"]),
    paper_d: ("quick/bottleneck-fig1", ["slope-tends-to-rank", "singular-values"]),
}
"""Figure of the reference behind each panel, and the claims that its title needs."""


def drawn(reference: Path) -> bytes:
    """Return the picture as PNG. Raises InputError if a claim that a title needs does not hold."""
    content = BytesIO()
    with drawn_in("screen"):
        picture, axes = sheet(2, 2, height=5.4, left=1.05, right=0.2, gap=1.0)
        for panel_axes, (draw, (figure, claims)) in zip(axes.flat, PANELS.items(), strict=True):
            verdicts = read_csv(reference / figure / "claims.csv").set_index("claim")["verdict"]
            if not (verdicts[claims] == "holds").all():
                raise InputError(f"{figure}: what the overview says of it does not hold any more")
            draw(panel_axes, read_tables(reference / figure))
        picture.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()
