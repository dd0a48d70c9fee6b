"""The drawing of study `constructions`: where paper A's theorems are exact, and where rounding ends."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.claims import Tables
from runner.norm_tuning.solvers import EPSILON
from runner.norm_tuning.theory import live_units_probability

SERIES = {
    "wide": ("tab:green", "o", "Theorem 1, m = d²"),
    "wider": ("tab:olive", "v", "Theorem 1, m = 2d²"),
    "low_rank": ("tab:blue", "s", "Corollary 1, r = {rank}"),
    "deep": ("tab:red", "D", "Theorem 2, k = {block}"),
    "sparse": ("tab:purple", "^", "Theorem 3, K of full rank"),
}


def random_targets(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows of random targets, in all arithmetics."""
    return metrics[metrics["target"] == "random"]


def series_of(metrics: pd.DataFrame) -> pd.Series:
    """The key in SERIES of each row: the theorem, with those of width above d^2 apart."""
    wider = (metrics["theorem"] == "wide") & (metrics["width"] > metrics["target_width"] ** 2)
    return metrics["theorem"].where(~wider, "wider")


def error_by_width(metrics: pd.DataFrame) -> pd.DataFrame:
    """For each series and d: median and range of the error, and of the rounding that explains it.

    Float64 and systems of full rank only. Of the deep networks, those of the block size that the
    most widths have.
    """
    rows = random_targets(metrics).query("dtype == 'float64' and full_rank")
    deep = rows[rows["theorem"] == "deep"]
    if not deep.empty:
        block = deep.groupby("block")["target_width"].nunique().idxmax()
        rows = rows[(rows["theorem"] != "deep") | (rows["block"] == block)]
    return _summary(rows.assign(series=series_of(rows)), ["series", "target_width", "depth"])


def error_by_block(metrics: pd.DataFrame) -> pd.DataFrame:
    """The same for the deep networks, by arithmetic, d and k; widths with several k and one layer."""
    rows = random_targets(metrics).query("theorem == 'deep' and depth == 1")
    several = rows.groupby("target_width")["block"].transform("nunique") > 1
    return _summary(rows[several], ["dtype", "target_width", "block"])


def full_rank_by_sparsity(metrics: pd.DataFrame) -> pd.DataFrame:
    """For each d and p: the fraction of draws of full rank, its error, and the share predicted.

    `standard_error` is that of a binomial fraction, by Agresti and Coull (finite at 0 and 1);
    `live_units` is the probability that no hidden unit is cut off.
    """
    rows = random_targets(metrics).query("theorem == 'sparse' and depth == 1")
    rows = rows[rows["width"] == rows["target_width"] ** 2]
    keys = ["target_width", "sparsity"]
    drawn = rows.groupby(keys)["full_rank"].agg(["mean", "sum", "size"]).reset_index()
    drawn.columns = [*keys, "fraction", "count", "replicates"]
    adjusted = (drawn["count"] + 2) / (drawn["replicates"] + 4)
    drawn["standard_error"] = np.sqrt(adjusted * (1 - adjusted) / (drawn["replicates"] + 4))
    drawn["live_units"] = [
        live_units_probability(int(d), int(d), int(d) ** 2, p)
        for d, p in zip(drawn["target_width"], drawn["sparsity"], strict=True)
    ]
    return drawn


def draw_constructions(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Error against d; error of the deep construction against k; full rank against sparsity."""
    metrics = tables["metrics"]
    by_width, by_block = error_by_width(metrics), error_by_block(metrics)
    by_sparsity = full_rank_by_sparsity(metrics)
    layout = [["width", "block", "log"], ["width", "block", "log"], ["width", "digits", "root"]]
    figure, axes = plt.subplot_mosaic(
        layout, figsize=(11.5, 4.3), height_ratios=[1, 0.35, 0.95], width_ratios=[1.15, 1, 1]
    )
    _draw_widths(axes["width"], by_width, random_targets(metrics))
    _draw_blocks(axes["block"], axes["digits"], by_block)
    _draw_sparsities(axes["log"], axes["root"], by_sparsity)
    panels = {"error by d": by_width, "error by k": by_block, "full rank": by_sparsity}
    return figure, pd.concat([rows.assign(panel=name) for name, rows in panels.items()])


def _summary(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    groups = rows.groupby(keys)
    errors = groups["max_abs_error"].agg(["median", "min", "max", "size"]).reset_index()
    errors.columns = [*keys, "median_error", "lowest_error", "highest_error", "replicates"]
    errors["epsilon_condition"] = EPSILON * groups["condition_number"].median().to_numpy()
    return errors


def _bars(axes: Axes, x: str, rows: pd.DataFrame, **style) -> None:
    median = rows["median_error"]
    lengths = np.array([median - rows["lowest_error"], rows["highest_error"] - median])
    axes.errorbar(rows[x], median, lengths, capsize=2, **style)


def _draw_widths(axes: Axes, drawn: pd.DataFrame, metrics: pd.DataFrame) -> None:
    names = metrics.groupby("theorem")[["rank", "block"]].agg(lambda values: values.mode().iloc[0])
    for series, (color, marker, label) in SERIES.items():
        rows = drawn[drawn["series"] == series]
        if rows.empty:
            continue
        theorem = "wide" if series == "wider" else series
        label = label.format(**names.loc[theorem])
        _bars(axes, "target_width", rows, fmt=marker + "-", color=color, label=label)
        axes.plot(rows["target_width"], rows["epsilon_condition"], "--", color=color, alpha=0.5)
    axes.plot([], [], "--", color="grey", label="machine precision × condition number")
    axes.set(xscale="log", yscale="log", xlabel="target width d", ylabel="largest |f(x) − g(x)|")
    axes.set_title("exact up to rounding")
    widths = sorted(drawn["target_width"].unique())
    axes.set_xticks(widths, labels=[str(width) for width in widths])
    axes.minorticks_off()
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
    double.axhline(1, color="grey", linewidth=0.8)
    double.set(
        yscale="log", ylabel="largest |f(x) − g(x)|, float64", title="Theorem 2, by block size"
    )
    double.set_ylim(1e-16, 1e8)
    double.legend(loc="upper right")
    double.tick_params(labelbottom=False)
    digits.set(yscale="log", xlabel="block size k", ylabel="mpmath")
    digits.sharex(double)


def _draw_sparsities(log: Axes, root: Axes, drawn: pd.DataFrame) -> None:
    """Above: p over log d / d (the paper's conjecture); below: over sqrt(log d / d) (Theorem 3)."""
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
    log.legend(loc="lower right")
    for axes in (log, root):
        axes.set(ylim=(-0.05, 1.08), ylabel="probability")


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
