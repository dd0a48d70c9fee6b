"""Drawings of study `norm_layers`."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning import looks
from runner.papers.norm_tuning.norm_layers import config
from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.rows import nonempty, select
from runner.results.spreads import spread
from runner.results.style import QUIET, SMALL, Look, rail, sheet, ticks

FLOOR, TOP = 2e-4, 6e5
"""Ends of the scale of a relative error."""

PERCENT = {1e-2: "1 %", 1: "100 %", 100: "10⁴ %", 1e4: "10⁶ %"}
SPREAD = 0.3
"""Half the height of a row: from the smallest d, above, to the largest."""

PER_SAMPLE = (("layer_norm", "LayerNorm"), ("rms_norm", "RMSNorm"))
WITH_BIASES = " with biases"
BATCH = "BatchNorm, batch"


def say_layers(tables: Tables) -> str:
    """The least error that is possible in LayerNorm without biases, and what fits reach with."""
    least = select(tables["metrics"], layer="layer_norm")["lower_bound"].min()
    fitted = select(tables["metrics"], layer="layer_norm" + WITH_BIASES, mode="fitted")
    medians = 100 * fitted.groupby("target_width")["relative_mse"].median()
    return (
        "Exact in BatchNorm with fixed statistics; in LayerNorm without biases nothing is below"
        f" {int(100 * least)} % of the variance, with biases a fit reaches {medians.max():.0f} %"
    )


def _rows(metrics: pd.DataFrame) -> list[tuple[str, Look, pd.DataFrame]]:
    """Name, look and networks of each row, from above. Raises NoRows without any."""
    fixed, batches = (metrics[metrics["mode"] == mode] for mode in ("evaluation", "training"))
    names = {"": "BatchNorm, fixed statistics", WITH_BIASES: "the same with biases"}
    rows = [
        (names[b], looks.CONSTRUCTION, fixed[fixed["layer"] == "batch_norm" + b]) for b in names
    ]
    prefix = BATCH
    for size, of_size in reversed([*batches.query("layer == 'batch_norm'").groupby("batch_size")]):
        rows.append((f"{prefix} of {size:,}", looks.BATCH_STATISTICS, of_size))
        prefix = "batch"
    for b in names:
        for layer, name in PER_SAMPLE:
            rows.append((name + b, looks.LAYER_NORM, metrics[metrics["layer"] == layer + b]))
    return nonempty(pd.Series([row for row in rows if len(row[2])]), "layer").tolist()


def _strip(axes: Axes, values: np.ndarray, y: float, look: Look) -> None:
    """Every replicate on one line, and their median."""
    look.each(axes, values, np.full(len(values), y))
    axes.plot(np.median(values), y, "|", color=look.ink, markersize=7, markeredgewidth=2.4)


def draw_norm_layers(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """A row for each kind of layer, in it a line for each d."""
    metrics = tables["metrics"]
    widths = sorted(metrics["target_width"].unique())
    rows = _rows(metrics)
    picture, ((axes,),) = sheet(1, 1, left=2.65, top=0.15)
    place = rail(axes, FLOOR, TOP, axis="x")
    for row, (label, look, of_layer) in enumerate(rows):
        lines = np.linspace(row - SPREAD, row + SPREAD, len(widths))
        for d, y in zip(widths, lines, strict=True):
            of = of_layer[of_layer["target_width"] == d]
            if of.empty:
                continue
            for mode, rows_of in of.groupby("mode"):
                dots = looks.FITTED if mode == "fitted" else look
                _strip(axes, place(rows_of["relative_mse"].clip(upper=TOP)), y, dots)
            if of["lower_bound"].any():
                _strip(axes, place(of["lower_bound"]), y, looks.LEAST)
            if label.startswith(BATCH) and d in (widths[0], widths[-1]):
                low = place(of["relative_mse"]).min() / 1.4
                look.name(axes, low, y, f"d = {d}", ha="right", size=SMALL)
        look.name(axes, -0.02, row, label, transform=axes.get_yaxis_transform(), ha="right")
        if label == "LayerNorm":
            least = of_layer["lower_bound"].min() / 1.2
            looks.LEAST.name(axes, least, row, "least possible", ha="right")
        fitted = of_layer[of_layer["mode"] == "fitted"]["relative_mse"]
        if label.endswith(WITH_BIASES) and len(fitted):
            looks.FITTED.name(axes, fitted.min() / 1.4, row, "fitted", ha="right")
    axes.axvline(1, color=QUIET.color, linestyle=QUIET.dashes, linewidth=QUIET.width, zorder=1)
    QUIET.name(axes, 1.3, 0, "a constant", ha="left")
    axes.set(ylim=(len(rows) - 0.45, -0.55), yticks=[])
    axes.spines["left"].set_visible(False)
    ticks(axes.xaxis, PERCENT, list(PERCENT.values()))
    axes.set_xlabel("error / variance of the target")
    keys = ["layer", "mode", "batch_size", "target_width"]
    return picture, spread(metrics, keys, ["relative_mse", "lower_bound"])


HEADLINE = ["relative_mse", "max_abs_error"]

FIGURES = [
    Drawing(
        "norm-layers",
        draw_norm_layers,
        whose="ours",
        findings=[
            Finding(say_layers, holds=["batch-norm-exact", "layer-norm-cannot", "biases-undercut"])
        ],
        caption="Error of the construction of Theorem 1 in real layers, over the variance of the"
        " target g. Each row is a kind of layer; in it a line for each d, from the smallest above"
        " to the largest below. Dots are replicates, strokes medians; black: the least error that"
        " any scales and shifts reach in LayerNorm or RMSNorm without biases; purple: scales and"
        " shifts fitted by L-BFGS. Biases are frozen, of the law of the weights. What is below"
        " 0.02 % lies on the rail. Targets are random, inputs Gaussian.",
        shows={"layer": [layer + b for b in ("", WITH_BIASES) for layer in config.LAYERS]},
    ),
]
