"""Drawings of study `norm_layers`."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from runner.papers.norm_tuning import looks
from runner.papers.norm_tuning.norm_layers import config
from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.rows import nonempty, select
from runner.results.spreads import spread
from runner.results.style import QUIET, Look, rail, sheet, ticks

FLOOR, TOP = 2e-4, 6e5
"""Ends of the scale of a relative error."""

PERCENT = {1e-2: "1 %", 1: "100 %", 100: "10⁴ %", 1e4: "10⁶ %"}
SPREAD = 0.3
"""Half the height of a row: from the smallest d, above, to the largest."""

WITH_BIASES = " with biases"
NAMES = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}


def say_layers(tables: Tables) -> str:
    """Say the least error that is possible in LayerNorm without biases, and what fits reach
    with."""
    least = select(tables["metrics"], layer="layer_norm")["lower_bound"].min()
    fitted = select(tables["metrics"], layer="layer_norm" + WITH_BIASES, mode="fitted")
    medians = 100 * fitted.groupby("target_width")["relative_mse"].median()
    return (
        "Exact in BatchNorm with fixed statistics; in LayerNorm without biases nothing is below"
        f" {int(100 * least)} % of the variance, with biases a fit reaches {medians.max():.0f} %"
    )


def _named(layer: str, batch_size: int) -> tuple[str, Look]:
    """Return what a row is called, and how it looks."""
    kind, biases, _ = layer.partition(WITH_BIASES)
    if kind != "batch_norm":
        return NAMES[kind] + biases, looks.LAYER_NORM
    if batch_size:
        return f"BatchNorm, batch of {batch_size:,}", looks.BATCH_STATISTICS
    return "BatchNorm" + (biases or ", fixed statistics"), looks.CONSTRUCTION


def draw_norm_layers(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw a row for each kind of layer, in it a line for each d."""
    metrics = tables["metrics"]
    shown = metrics[(metrics["batch_size"] == 0) | (metrics["layer"] == "batch_norm")]
    rows = list(nonempty(shown, "layer").groupby(["layer", "batch_size"]))
    widths = sorted(shown["target_width"].unique())
    beside = dict(zip(widths, np.linspace(-SPREAD, SPREAD, len(widths)), strict=True))
    picture, ((axes,),) = sheet(1, 1, left=2.65, top=0.15)
    place = rail(axes, FLOOR, TOP, axis="x")
    for row, (kind, of_layer) in enumerate(rows):
        label, look = _named(*kind)
        look.name(axes, -0.02, row, label, transform=axes.get_yaxis_transform(), ha="right")
        for (d, mode), of in of_layer.groupby(["target_width", "mode"]):
            dots = looks.FITTED if mode == "fitted" else look
            errors = of["relative_mse"].fillna(np.inf).clip(upper=TOP)
            looks.strip(axes, place(errors), row + beside[d], dots)
            if of["lower_bound"].any():
                looks.strip(axes, place(of["lower_bound"]), row + beside[d], looks.LEAST)
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
        " to the largest below. Dots are replicates, strokes medians; black: an error that no"
        " scales and shifts undercut in LayerNorm or RMSNorm without biases; purple: scales and"
        " shifts fitted by L-BFGS. Biases are frozen, of the law of the weights. What is below"
        " 0.02 % lies on the rail, what is beyond the scale at its end. Targets are random,"
        " inputs Gaussian.",
        shows={"layer": [layer + b for b in ("", WITH_BIASES) for layer in config.LAYERS]},
    ),
]
