"""Drawings of study `norm_layers`."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.norm_layers.tables import training_mode
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview
from runner.results.rows import select

ERROR = "mean squared error / variance of g"
MARKERS = "os^Dvp"


@figure("norm-layers")
def draw_norm_layers(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Left: training mode against the batch size. Right: all layers against d."""
    figure, (by_batch, by_width) = plt.subplots(1, 2, figsize=(9, 3.8))
    drawn = []
    with or_empty(by_batch):
        drawn.append(_draw_batches(by_batch, training_mode(tables)))
    drawn.append(_draw_widths(by_width, tables))
    return figure, pd.concat(drawn, ignore_index=True)


def _summary(rows: pd.DataFrame, keys: list[str], column: str = "relative_mse") -> pd.DataFrame:
    """Median and range over the replicates."""
    found = rows.groupby(keys)[column].agg(["median", "min", "max", "size"]).reset_index()
    return found.rename(columns={"min": "lowest", "max": "highest", "size": "replicates"})


def _line(axes: Axes, x: pd.Series, drawn: pd.DataFrame, **style) -> None:
    lengths = np.array([drawn["median"] - drawn["lowest"], drawn["highest"] - drawn["median"]])
    axes.errorbar(x, drawn["median"], lengths, capsize=2, elinewidth=0.8, **style)


def _draw_batches(axes: Axes, rows: pd.DataFrame) -> pd.DataFrame:
    drawn = _summary(rows, ["target_width", "batch_size"])
    widths = sorted(drawn["target_width"].unique())
    colors = plt.cm.viridis(np.linspace(0, 0.9, len(widths)))
    dodges = np.geomspace(0.85, 1 / 0.85, len(widths))
    for index, (d, color, dodge) in enumerate(zip(widths, colors, dodges, strict=True)):
        line = drawn[drawn["target_width"] == d]
        style = {"color": color, "fmt": f"{MARKERS[index % len(MARKERS)]}-"}
        _line(axes, line["batch_size"] * dodge, line, label=f"d = {d}", **style)
    sizes = np.array(sorted(drawn["batch_size"].unique()), dtype=float)
    falling = drawn["median"].max() * sizes[0] / sizes
    axes.plot(sizes, falling, ":", color="grey", label="1/B")
    axes.set(xscale="log", yscale="log", xlabel="batch size B", ylabel=ERROR)
    axes.set_title("BatchNorm with the statistics of the batch")
    axes.legend()
    return drawn.assign(panel="batch size")


def _draw_widths(axes: Axes, tables: Tables) -> pd.DataFrame:
    metrics, parts = tables["metrics"], []
    layer_norm = select(metrics, layer="layer_norm")
    series = {
        "BatchNorm, evaluation mode": (
            select(metrics, layer="batch_norm", mode="evaluation"),
            "relative_mse",
            {"color": "tab:green", "fmt": "s-"},
        ),
        "LayerNorm": (layer_norm, "relative_mse", {"color": "tab:red", "fmt": "D-"}),
        "least error of any scales and shifts in LayerNorm": (
            layer_norm,
            "lower_bound",
            {"color": "tab:red", "fmt": ":"},
        ),
    }
    for B, rows in metrics[metrics["mode"] == "training"].groupby("batch_size"):
        if B in (64, 4096):
            style = {"color": "tab:blue", "fmt": "o-"}
            style |= {} if B == 64 else {"fmt": "v--", "markerfacecolor": "white"}
            series[f"BatchNorm, training mode, B = {B}"] = (rows, "relative_mse", style)
    for label, (rows, column, style) in series.items():
        line = _summary(rows, ["target_width"], column)
        _line(axes, line["target_width"], line, label=label, **style)
        parts.append(line.assign(panel="width", series=label))
    axes.set(yscale="log", xlabel="target width d   (m = d²)", ylabel=ERROR)
    axes.set_title("The construction of Theorem 1 in real layers")
    axes.legend(loc="center", fontsize=7)
    return pd.concat(parts)


@overview
def overview_norm_layers(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the error of training mode against the batch size."""
    figure, axes = plt.subplots(figsize=(5, 3.6))
    _draw_batches(axes, training_mode(tables))
    summary = tables["metrics"].groupby(["layer", "mode", "batch_size"], sort=False)
    return figure, summary[["relative_mse", "max_abs_error"]].median().reset_index()
