"""Drawings of paper A's figures and the quick looks of its studies."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.bn_only.tables import square_runs, width_runs
from runner.papers.norm_tuning.looks_before import METHODS, OPTIMIZERS
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview
from runner.results.style_before import guide, points, subplots

THICK = {"student_construction": {"linewidth": 3.5, "zorder": 2}}
"""Below the others, which may lie on it."""

SCHEDULES = ["constant", "cosine", "exponential"]
SHIFTS = {"sgd": -0.15, "momentum": 0.0, "adam": 0.15}
"""Along the axis, so that optimizers stand side by side."""

SHOWN = 1e-3
"""Of the variance of g: from here on errors are drawn large."""

WIDTHS = "learner width m"
TARGET_WIDTHS = "target width d   (m = d²)"


def trimmed(values: pd.Series) -> np.ndarray:
    """The sorted values without the smallest and the largest (Appendix E); all if below four."""
    ordered = np.sort(values.to_numpy(dtype=float))
    return ordered[1:-1] if len(ordered) >= 4 else ordered


def summarize(metrics: pd.DataFrame, x: str, panel: str) -> pd.DataFrame:
    """One row per method and x: median and range of the test error, and the paper's mean of it
    without smallest and largest."""
    rows = []
    for (method, value), group in metrics.groupby(["method", x], sort=False):
        error = group["test_mse"]
        rows.append(
            {
                "panel": panel,
                "method": method,
                x: value,
                "median_mse": error.median(),
                "lowest_mse": error.min(),
                "highest_mse": error.max(),
                "trimmed_mean_mse": trimmed(error).mean(),
                "variance_of_g": (error / group["relative_mse"]).mean(),
                "replicates": len(group),
            }
        )
    return pd.DataFrame(rows).sort_values(["method", x], ignore_index=True)


def _panel(pair: np.ndarray, metrics: pd.DataFrame, x: str, label: str, panel: str) -> pd.DataFrame:
    """Two axes, the lower one with everything, the upper with what is near the variance of g.

    Medians are never above its limits; bars may be: a single network that diverged.
    """
    drawn = summarize(metrics, x, panel)
    variance = drawn.groupby(x)["variance_of_g"].mean()
    for axes in pair:
        _draw_methods(axes, drawn, x)
        axes.plot(variance.index, variance, label="variance of g (constant)", **guide())
        axes.set(yscale="log")
    upper, lower = pair
    reached = [SHOWN * variance.min(), 2 * max(variance.max(), drawn["median_mse"].max())]
    if np.isfinite(reached).all():
        upper.set_ylim(*reached)
    upper.set(ylabel="test mean squared error", title=panel)
    lower.set(xlabel=label, ylabel="whole range")
    return drawn


def _draw_methods(axes: Axes, drawn: pd.DataFrame, x: str) -> None:
    """Medians and ranges; the methods stand a little beside each other."""
    there = [method for method in METHODS if method in set(drawn["method"])]
    step = 0.006 * np.ptp(drawn[x])
    for place, method in enumerate(there):
        rows, look = drawn[drawn["method"] == method], METHODS[method]
        median = rows["median_mse"]
        bars = np.array([median - rows["lowest_mse"], rows["highest_mse"] - median]).clip(min=0)
        line = {"linewidth": points(1.1), "zorder": 3} | THICK.get(method, {})
        line |= {"elinewidth": points(0.8), "capsize": points(2), "label": look.label}
        beside = rows[x] + step * (place - (len(there) - 1) / 2)
        axes.errorbar(beside, median, bars, **look.both | line)


def _row_of_panels(axes: np.ndarray, metrics: pd.DataFrame, sparsity: float) -> list[pd.DataFrame]:
    """Left: m = d^2 and d grows. Right: d is fixed and m grows. axes: (2, 2), pairs in columns."""
    chosen = metrics[metrics["sparsity"] == sparsity]
    drawn = []
    with or_empty(axes[0, 0]):
        title = f"p = {sparsity:g}, m = d²"
        square = square_runs(chosen)
        drawn.append(_panel(axes[:, 0], square, "target_width", TARGET_WIDTHS, title))
    wide = width_runs(chosen)
    d = int(wide["target_width"].iloc[0])
    drawn.append(_panel(axes[:, 1], wide, "width", WIDTHS, f"p = {sparsity:g}, d = {d}"))
    for panel in axes[:, 1]:
        panel.axvline(d**2, color="grey", linewidth=points(0.8), alpha=0.6)
    place = {"xycoords": ("data", "axes fraction"), "ha": "center", "fontsize": "small"}
    axes[0, 1].annotate("m = d²", (d**2, 1.01), color="grey", **place)
    return drawn


MARKS = (
    "Left: test error against the width d of the target, for learners of width m = d²; right:"
    " against m, for one d; p is the share of the frozen weights that are not zero. The lower"
    " panels show all of what the upper ones cut off. Points are medians over the replicates, bars"
    " their whole range; methods stand a little beside each other. The thick orange line lies below"
    " the others. Dotted: the error of a constant. Targets are random, inputs Gaussian."
)


@figure("fig4", caption=MARKS)
@figure("fig5", caption=MARKS)
def draw_by_sparsity(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figures 4 and 5 of paper A: two panels for each sparsity, below them the whole range."""
    metrics = tables["metrics"]
    sparsities = sorted(metrics["sparsity"].unique(), reverse=True)
    picture, axes = subplots(
        2 * len(sparsities),
        2,
        size=(8.4, 4.6 * len(sparsities) + 0.6),
        height_ratios=[3, 1] * len(sparsities),
        sharex="col",
        squeeze=False,
    )
    drawn = []
    for number, sparsity in enumerate(sparsities):
        drawn += _row_of_panels(axes[2 * number : 2 * number + 2], metrics, sparsity)
    for panel in axes.flat:
        panel.tick_params(labelbottom=True)
    handles, labels = axes[0, 1].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=3)
    return picture, pd.concat(drawn, ignore_index=True)


@figure(
    "norm-schedules",
    caption="Test error over the variance of the target g after training scales and shifts by each"
    " optimizer and schedule, each at the best rate of its own, a panel for each d. Large markers"
    " are medians, dots single replicates. Targets are random, inputs Gaussian.",
)
def draw_schedules(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Appendix E's training details: optimizers and schedules for scales and shifts, best rates."""
    metrics = tables["metrics"].query("method == 'best'")
    widths = sorted(metrics["target_width"].unique())
    size = (4.2 * len(widths), 3.6)
    picture, axes = subplots(1, len(widths), size=size, sharey=True, squeeze=False)
    for panel, d in zip(axes[0], widths, strict=True):
        of_width = metrics[metrics["target_width"] == d]
        for optimizer, look in OPTIMIZERS.items():
            rows = of_width[of_width["optimizer"] == optimizer]
            for place, schedule in enumerate(SCHEDULES):
                found = rows.loc[rows["schedule"] == schedule, "relative_mse"]
                if found.empty:
                    continue
                x = place + SHIFTS[optimizer]
                small = {"alpha": 0.4, "markersize": points(4)}
                panel.plot([x] * len(found), found, ".", color=look.color, **small)
                large = {"label": look.label if place == 0 else None, "markersize": points(7)}
                panel.plot(x, found.median(), **look.dots | large)
        panel.set_xticks(range(len(SCHEDULES)), SCHEDULES)
        panel.set_xlim(-0.4, len(SCHEDULES) - 0.6)
        panel.set(yscale="log", title=f"d = {d}, m = {of_width['width'].iloc[0]}")
    axes[0, 0].set_ylabel("test mean squared error / variance of g")
    handles, labels = axes[0, -1].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=3)
    columns = ["test_mse", "relative_mse", "learning_rate", "dead"]
    keys = ["target_width", "optimizer", "schedule"]
    return picture, metrics.groupby(keys, sort=False)[columns].median().reset_index()


@overview
def overview_bn_only(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the error while training, and where each method ends."""
    metrics = tables["metrics"]
    picture, axes = subplots(size=(6, 3.6))
    for method, rows in tables.get("curves", pd.DataFrame(columns=["method"])).groupby("method"):
        look = METHODS[method]
        for _, curve in rows.groupby("replicate"):
            thin = {"color": look.color, "alpha": 0.3, "linewidth": 0.9}
            axes.plot(curve["samples"], curve["test_mse"], **thin)
        median = rows.groupby("samples")["test_mse"].median()
        axes.plot(median.index, median, label=look.label, **look.line)
    for method, rows in metrics[metrics["learning_rate"].isna()].groupby("method"):
        look = METHODS[method]
        dashed = look.line | {"linestyle": "--", "label": look.label}
        axes.axhline(rows["test_mse"].median(), **dashed)
    first = metrics.iloc[0]
    title = f"d = {first['target_width']}, m = {first['width']}, p = {first['sparsity']:g}"
    axes.set(yscale="log", xlabel="training samples", ylabel="test MSE", title=title)
    axes.legend()
    columns = ["test_mse", "relative_mse", "max_abs_error", "condition_number", "numerical_rank"]
    summary = metrics.groupby("method", sort=False)[columns].median().reset_index()
    return picture, summary
