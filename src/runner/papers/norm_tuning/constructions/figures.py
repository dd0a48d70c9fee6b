"""Drawings of study `constructions`: how exact paper A's theorems are in floating point."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.constructions.tables import full_rank_by_sparsity, random_targets
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview
from runner.results.rows import nonempty

SERIES = {
    "wide": ("tab:green", "o", "Theorem 1, m = d²"),
    "wider": ("tab:olive", "v", "Theorem 1, m = 2d²"),
    "low_rank": ("tab:blue", "s", "Corollary 1, r = {rank}"),
    "deep": ("tab:red", "D", "Theorem 2, k = {block}"),
    "sparse": ("tab:purple", "^", "Theorem 3, K of full rank"),
}
DODGES = np.geomspace(0.96, 1.04, len(SERIES))
DECADES = 20  # between the ticks of the mpmath panel


def series_of(metrics: pd.DataFrame) -> pd.Series:
    """The key in SERIES of each row: the theorem, with those of width above d^2 apart."""
    wider = (metrics["theorem"] == "wide") & (metrics["width"] > metrics["target_width"] ** 2)
    return metrics["theorem"].where(~wider, "wider")


def error_by_width(metrics: pd.DataFrame) -> pd.DataFrame:
    """For each series and d: median and range of the error, and of the rounding that explains it.

    Float64 and systems of full rank only; of each series those settings (r, k, l) that were run at
    the most widths.
    """
    rows = random_targets(metrics).query("dtype == 'float64' and full_rank")
    rows = rows.assign(series=series_of(rows))
    settings = ["series", "rank", "block", "depth"]
    widths = rows.groupby(settings)["target_width"].nunique().reset_index(name="widths")
    chosen = widths.sort_values("widths").drop_duplicates("series", keep="last")
    return _summary(rows.merge(chosen[settings]), [*settings, "target_width"])


def error_by_block(metrics: pd.DataFrame) -> pd.DataFrame:
    """The same for deep networks of one block, by arithmetic, d and k; widths with several k."""
    rows = random_targets(metrics).query("theorem == 'deep' and depth == 1")
    several = rows.groupby("target_width")["block"].transform("nunique") > 1
    return _summary(rows[several], ["dtype", "target_width", "block"])


@figure("constructions")
def draw_constructions(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Error against d; error of the deep construction against k; full rank against sparsity."""
    metrics = tables["metrics"]
    panels = {
        "error by d": error_by_width(metrics),
        "error by k": error_by_block(metrics),
        "full rank": full_rank_by_sparsity(metrics),
    }
    figure = plt.figure(figsize=(11.5, 4.4))
    left, middle, right = figure.subfigures(1, 3, width_ratios=[1.15, 1, 1])
    widths = left.subplots()
    with or_empty(widths):
        _draw_widths(widths, nonempty(panels["error by d"], "float64 systems of full rank"))
    blocks = middle.subplots(2, 1, sharex=True, height_ratios=[1.5, 1])
    with or_empty(*blocks):
        _draw_blocks(*blocks, nonempty(panels["error by k"], "several block sizes of one width"))
    sparsities = right.subplots(2, 1)
    with or_empty(*sparsities):
        _draw_sparsities(*sparsities, nonempty(panels["full rank"], "sparse networks at m = d²"))
    return figure, pd.concat([rows.assign(panel=name) for name, rows in panels.items()])


def _summary(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    groups = rows.groupby(keys)
    errors = groups["max_abs_error"].agg(["median", "min", "max", "size"]).reset_index()
    errors.columns = [*keys, "median_error", "lowest_error", "highest_error", "replicates"]
    errors["epsilon_condition"] = (
        np.finfo(float).eps * groups["condition_number"].median().to_numpy()
    )
    return errors


def _bars(axes: Axes, x: str, rows: pd.DataFrame, dodge: float = 1.0, **style) -> None:
    """Medians with the range of the replicates; `dodge` moves them sideways on a log axis."""
    median = rows["median_error"]
    lengths = np.array([median - rows["lowest_error"], rows["highest_error"] - median])
    axes.errorbar(rows[x] * dodge, median, lengths, capsize=1.5, elinewidth=0.8, **style)


def _draw_widths(axes: Axes, drawn: pd.DataFrame) -> None:
    for dodge, (series, (color, marker, label)) in zip(DODGES, SERIES.items(), strict=True):
        rows = drawn[drawn["series"] == series]
        if rows.empty:
            continue
        name = label.format(**rows.iloc[0])
        _bars(axes, "target_width", rows, dodge, fmt=marker + "-", color=color, label=name)
        axes.plot(rows["target_width"], rows["epsilon_condition"], "--", color=color, alpha=0.5)
    axes.plot([], [], "--", color="grey", label="machine epsilon × condition number")
    axes.set(xscale="log", yscale="log", xlabel="target width d", ylabel="largest |f(x) − g(x)|")
    axes.set_title("Float64: exact up to rounding")
    widths = sorted(drawn["target_width"].unique())
    axes.set_xticks(widths, labels=[str(width) for width in widths])
    axes.minorticks_off()
    lowest, highest = drawn["lowest_error"].min(), drawn["epsilon_condition"].max()
    if np.isfinite([lowest, highest]).all() and lowest > 0:
        axes.set_ylim(lowest / 3, highest * (highest / lowest) ** 0.55)  # room for the legend
    axes.legend(loc="upper left", fontsize=7)


def _draw_blocks(double: Axes, digits: Axes, drawn: pd.DataFrame) -> None:
    """Above: float64; below: mpmath, many decades down."""
    widths = sorted(drawn["target_width"].unique())
    colors = plt.cm.viridis(np.linspace(0, 0.85, len(widths)))
    for width, color in zip(widths, colors, strict=True):
        rows = drawn[(drawn["target_width"] == width) & (drawn["dtype"] == "float64")]
        _bars(double, "block", rows, fmt="o-", color=color, label=f"d = {width}")
        double.plot(rows["block"], rows["epsilon_condition"], "--", color=color, alpha=0.5)
        exact = drawn[(drawn["target_width"] == width) & (drawn["dtype"] == "mpmath")]
        _bars(digits, "block", exact, fmt="D-", color=color, markerfacecolor="white")
    double.set(yscale="log", ylabel="largest error, float64", title="Theorem 2 by block size")
    if double.get_legend_handles_labels()[0]:
        double.legend(loc="upper right")
    digits.set(yscale="log", xlabel="block size k", ylabel="the same, mpmath")
    digits.set_xticks(sorted(drawn["block"].unique()))
    exponents = np.log10(drawn[drawn["dtype"] == "mpmath"]["median_error"])
    if len(exponents) and np.isfinite(exponents).all():
        lowest = DECADES * np.floor(exponents.min() / DECADES)
        ticks = np.arange(lowest, exponents.max() + DECADES, DECADES)
        digits.set_yticks(10.0**ticks)
        digits.minorticks_off()
        digits.set_ylim(10.0 ** (ticks[0] - 5), 10.0 ** (ticks[-1] + 5))


def _draw_sparsities(log: Axes, root: Axes, drawn: pd.DataFrame) -> None:
    """Above: p over log d / d (the paper's conjecture); below: over sqrt(log d / d) (Theorem 3)."""
    from runner.papers.norm_tuning.theory import live_units_probability  # late: torch

    widths = sorted(drawn["target_width"].unique())
    colors = plt.cm.plasma(np.linspace(0, 0.8, len(widths)))
    for width, color in zip(widths, colors, strict=True):
        rows = drawn[drawn["target_width"] == width]
        unit = np.log(width) / width
        p = np.linspace(0.01, 1, 400)
        predicted = [live_units_probability(width, width, width**2, each) for each in p]
        for axes, scale in ((log, unit), (root, np.sqrt(unit))):
            axes.plot(p / scale, predicted, color=color, linewidth=1)
            axes.errorbar(
                rows["sparsity"] / scale,
                rows["fraction"],
                rows["standard_error"],
                fmt="o",
                color=color,
                markersize=3.5,
                linewidth=0.8,
                label=f"d = {width}",
            )
    log.set(xlim=(0, 4.5), xlabel="p / (log d / d)", title="Theorem 3: K has full rank")
    root.set(xlim=(0, 2.2), xlabel="p / √(log d / d)")
    root.axvline(2, color="grey", linewidth=0.8, linestyle=":")
    root.annotate("the proof's\nsmallest p", (1.96, 0.45), ha="right", color="grey", fontsize=7.5)
    log.plot([], [], color="grey", linewidth=1, label="no unit cut off")
    log.legend(loc="lower right", fontsize=7.5)
    for axes in (log, root):
        axes.set(ylim=(-0.05, 1.08), ylabel="probability")


@overview
def overview_constructions(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the error of each replicate against what rounding allows."""
    metrics = tables["metrics"]
    figure, axes = plt.subplots(figsize=(5, 3.4))
    axes.plot(metrics["replicate"], metrics["max_abs_error"], "o", label="largest |f(x) − g(x)|")
    axes.plot(metrics["replicate"], metrics["rounding"], "_", label="n ε condition number")
    first = metrics.iloc[0]
    title = f"{first['theorem']}, d = {first['target_width']}, {first['target']} target"
    axes.set(yscale="log", xlabel="replicate", title=title)
    axes.legend()
    columns = ["max_abs_error", "agreement", "condition_number", "equations", "numerical_rank"]
    return figure, metrics[["replicate", *columns, "structural_rank"]]
