"""Drawings of study `norm_layers`."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.looks_before import BATCH_STATISTICS, CONSTRUCTION, LAYER_NORM
from runner.papers.norm_tuning.norm_layers.tables import training_mode
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview
from runner.results.rows import select
from runner.results.style_before import DOTTED, HOLLOW, LONG, guide, ordered, points, subplots

ERROR = "mean squared error / variance of g"
DODGE = 0.15
"""In widths: so that bars stand beside each other."""


@figure(
    "norm-layers",
    caption="Error of the construction of Theorem 1 in real layers over the variance of the target"
    " g. Left: BatchNorm with the statistics of the batch against its size B, for several widths d;"
    " dotted: proportional to 1/B. Right: all layers against d; dotted: the least error of any"
    " scales and shifts in LayerNorm. Points are medians over the replicates, bars their whole"
    " range; they stand a little beside each other. Targets are random, inputs Gaussian.",
)
def draw_norm_layers(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Left: training mode against the batch size. Right: all layers against d."""
    picture, (by_batch, by_width) = subplots(1, 2, size=(9, 4.8))
    drawn = []
    with or_empty(by_batch):
        drawn.append(_draw_batches(by_batch, training_mode(tables)))
    drawn.append(_draw_widths(by_width, tables))
    for panel in (by_batch, by_width):
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16)}
        panel.legend(ncols=2 if panel is by_batch else 1, **place)
    return picture, pd.concat(drawn, ignore_index=True)


def _summary(rows: pd.DataFrame, keys: list[str], column: str = "relative_mse") -> pd.DataFrame:
    """Median and range over the replicates."""
    found = rows.groupby(keys)[column].agg(["median", "min", "max", "size"]).reset_index()
    return found.rename(columns={"min": "lowest", "max": "highest", "size": "replicates"})


def _line(axes: Axes, x: pd.Series, drawn: pd.DataFrame, **style) -> None:
    lengths = np.array([drawn["median"] - drawn["lowest"], drawn["highest"] - drawn["median"]])
    axes.errorbar(x, drawn["median"], lengths, capsize=points(2), elinewidth=points(0.8), **style)


def _draw_batches(axes: Axes, rows: pd.DataFrame) -> pd.DataFrame:
    drawn = _summary(rows, ["target_width", "batch_size"])
    looks = ordered(sorted(drawn["target_width"].unique()))
    dodges = np.geomspace(0.85, 1 / 0.85, len(looks))
    for (d, look), dodge in zip(looks.items(), dodges, strict=True):
        line = drawn[drawn["target_width"] == d]
        style = look.both | {"linestyle": "-", "label": f"d = {d}"}
        _line(axes, line["batch_size"] * dodge, line, **style)
    sizes = np.array(sorted(drawn["batch_size"].unique()), dtype=float)
    axes.plot(sizes, drawn["median"].max() * sizes[0] / sizes, label="1/B", **guide())
    axes.set(xscale="log", yscale="log", xlabel="batch size B", ylabel=ERROR)
    axes.set_title("BatchNorm with the statistics of the batch")
    return drawn.assign(panel="batch size")


def _draw_widths(axes: Axes, tables: Tables) -> pd.DataFrame:
    metrics, parts = tables["metrics"], []
    layer_norm = select(metrics, layer="layer_norm")
    evaluation = select(metrics, layer="batch_norm", mode="evaluation")
    dotted = {"color": LAYER_NORM.color, "linestyle": DOTTED}
    series = {
        "BatchNorm, evaluation mode": (evaluation, "relative_mse", CONSTRUCTION.both),
        "LayerNorm": (layer_norm, "relative_mse", LAYER_NORM.both),
        "least error of any in LayerNorm": (layer_norm, "lower_bound", dotted),
    }
    for B, rows in metrics[metrics["mode"] == "training"].groupby("batch_size"):
        if B in (64, 4096):
            style = BATCH_STATISTICS.both | ({} if B == 64 else HOLLOW | {"linestyle": LONG})
            series[f"BatchNorm, training mode, B = {B}"] = (rows, "relative_mse", style)
    for place, (label, (rows, column, style)) in enumerate(series.items()):
        line = _summary(rows, ["target_width"], column)
        beside = line["target_width"] + DODGE * (place - len(series) / 2)
        _line(axes, beside, line, label=label, **style)
        parts.append(line.assign(panel="width", series=label))
    axes.set(yscale="log", xlabel="target width d   (m = d²)", ylabel=ERROR)
    axes.set_title("The construction of Theorem 1 in real layers")
    return pd.concat(parts)


@overview
def overview_norm_layers(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the error of training mode against the batch size."""
    picture, axes = subplots(size=(5, 3.6))
    _draw_batches(axes, training_mode(tables))
    axes.legend()
    summary = tables["metrics"].groupby(["layer", "mode", "batch_size"], sort=False)
    return picture, summary[["relative_mse", "max_abs_error"]].median().reset_index()
