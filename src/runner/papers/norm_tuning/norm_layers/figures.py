"""Drawings of study `norm_layers`."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.looks import BATCH_STATISTICS, CONSTRUCTION, LAYER_NORM, LEAST
from runner.papers.norm_tuning.norm_layers.tables import training_mode
from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.rows import nonempty, select
from runner.results.style import QUIET, SMALL, Look, panel, rail, sheet, ticks

FLOOR, TOP = 2e-4, 6e5
"""Ends of the scale of a relative error."""

PERCENT = {1e-2: "1 %", 1: "100 %", 100: "10⁴ %", 1e4: "10⁶ %"}
SPREAD = 0.3
"""Half the height of a row: from the smallest d, above, to the largest."""


def say_layers(tables: Tables) -> str:
    """The least error that is possible in LayerNorm."""
    least = select(tables["metrics"], layer="layer_norm")["lower_bound"].min()
    return (
        "The construction is exact in BatchNorm layers with fixed statistics; in LayerNorm without"
        f" biases none gets below {int(100 * least)} % of the variance"
    )


def _rows(metrics: pd.DataFrame) -> Iterator[tuple[str, Look, pd.DataFrame]]:
    """Name, look and networks of each row, from above."""
    norm = metrics[metrics["layer"] == "batch_norm"]
    fixed = norm[norm["mode"] == "evaluation"]
    if len(fixed):
        yield "BatchNorm, fixed statistics", CONSTRUCTION, fixed
    batches = norm[norm["mode"] == "training"]
    sizes = sorted(batches["batch_size"].unique(), reverse=True)
    for size in sizes:
        prefix = "BatchNorm, batch" if size == sizes[0] else "batch"
        yield f"{prefix} of {size:,.0f}", BATCH_STATISTICS, batches[batches["batch_size"] == size]
    layer_norm = metrics[metrics["layer"] == "layer_norm"]
    if len(layer_norm):
        yield "LayerNorm", LAYER_NORM, layer_norm


def _strip(axes: Axes, values: np.ndarray, y: float, look: Look) -> None:
    """Every replicate on one line, and their median."""
    look.each(axes, values, np.full(len(values), y))
    axes.plot(np.median(values), y, "|", color=look.ink, markersize=7, markeredgewidth=2.4)


def draw_norm_layers(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """A row for each kind of layer, in it a line for each d."""
    metrics = tables["metrics"]
    widths = sorted(metrics["target_width"].unique())
    rows = nonempty(pd.Series(list(_rows(metrics))), "layer").tolist()
    picture, ((axes,),) = sheet(1, 1, left=2.65, top=0.15)
    place = rail(axes, FLOOR, TOP, axis="x")
    for row, (label, look, of_layer) in enumerate(rows):
        for number, d in enumerate(widths):
            of = of_layer[of_layer["target_width"] == d]
            y = row + SPREAD * (2 * number / max(1, len(widths) - 1) - 1)
            if of.empty:
                continue
            _strip(axes, place(of["relative_mse"].clip(upper=TOP)), y, look)
            if look is LAYER_NORM:
                _strip(axes, place(of["lower_bound"]), y, LEAST)
        look.name(axes, -0.02, row, label, transform=axes.get_yaxis_transform(), ha="right")
        if look is LAYER_NORM:
            least = of_layer["lower_bound"].min()
            LEAST.name(axes, least / 1.2, row, "least possible", ha="right")
        if row == 1 and look is BATCH_STATISTICS and len(widths) > 1:
            for d, side in ((widths[0], -1), (widths[-1], 1)):
                low = place(of_layer[of_layer["target_width"] == d]["relative_mse"]).min()
                place_of = {"ha": "right", "size": SMALL}
                look.name(axes, low / 1.4, row + side * SPREAD, f"d = {d}", **place_of)
    axes.axvline(1, color=QUIET.color, linestyle=QUIET.dashes, linewidth=QUIET.width, zorder=1)
    QUIET.name(axes, 1.3, 0, "a constant", ha="left")
    axes.set(ylim=(len(rows) - 0.45, -0.55), yticks=[])
    axes.spines["left"].set_visible(False)
    ticks(axes.xaxis, PERCENT, list(PERCENT.values()))
    axes.set_xlabel("error of the construction / variance of the target")
    keys = ["layer", "mode", "batch_size", "target_width"]
    groups = metrics.groupby(keys, dropna=False, sort=False)[["relative_mse", "lower_bound"]]
    drawn = groups.agg(["median", "min", "max"])
    drawn.columns = ["_".join(name) for name in drawn.columns]
    return picture, drawn.reset_index()


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the error of training mode against the batch size."""
    rows = training_mode(tables)
    picture, ((axes,),) = sheet(1, 1, height=3.4)
    axes.set(xscale="log", yscale="log")
    BATCH_STATISTICS.each(axes, rows["batch_size"], rows["relative_mse"])
    median = rows.groupby("batch_size")["relative_mse"].median()
    BATCH_STATISTICS.line(axes, median.index, median)
    ticks(axes.xaxis, sorted(rows["batch_size"].unique()))
    panel(axes, "a", "error / variance, statistics of the batch", "batch size B")
    summary = tables["metrics"].groupby(["layer", "mode", "batch_size"], sort=False)
    return picture, summary[["relative_mse", "max_abs_error"]].median().reset_index()


HEADLINE = ["relative_mse", "max_abs_error"]

FIGURES = [
    Drawing(
        "norm-layers",
        draw_norm_layers,
        whose="ours",
        findings=[Finding(say_layers, holds=["batch-norm-exact", "layer-norm-cannot"])],
        caption="Error of the construction of Theorem 1 in real layers, over the variance of the"
        " target g. Each row is a kind of layer; in it a line for each d, from the smallest above"
        " to the largest below. Dots are replicates, strokes medians; black: the least error that"
        " any scales and shifts reach in LayerNorm. What is below 0.02 % lies on the rail. Targets"
        " are random, inputs Gaussian.",
        shows={"layer": ["batch_norm", "layer_norm"]},
    ),
]
