"""Drawings of paper A's figures and the quick looks of its studies."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.bn_only.tables import square_runs, width_runs
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview

STYLES = {
    "sgd": ("tab:blue", "o-", "SGD on scales and shifts"),
    "batch_norm": ("tab:cyan", "v:", "the same with batch statistics"),
    "best": ("tab:blue", "o-", "best of SGD, momentum, Adam on them"),
    "teacher_construction": ("tab:green", "s-", "construction from the target"),
    "corrected_construction": ("tab:olive", "s:", "the same, means put right"),
    "student_construction": ("tab:orange", "D-", "construction from the dense network"),
    "dense": ("black", "^--", "SGD on a dense network (twice the samples)"),
    "dense_best": ("black", "^-", "best on a dense network (as many as blue)"),
}
"""The paper's colours. Orange is drawn thick, below the others, which may lie on it; what is not in
the paper's figures thin."""

LINES = {"student_construction": {"linewidth": 3.5, "zorder": 2}} | {
    method: {"linewidth": 0.8, "markersize": 3, "zorder": 3}
    for method in ("batch_norm", "best", "corrected_construction", "dense_best")
}

SCHEDULES = ["constant", "cosine", "exponential"]
OPTIMIZER_STYLES = {
    "sgd": ("tab:blue", "o"),
    "momentum": ("tab:purple", "s"),
    "adam": ("tab:red", "^"),
}
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
    """One row per method and x: mean and range of the test error without smallest and largest."""
    rows = []
    for (method, value), group in metrics.groupby(["method", x], sort=False):
        kept = trimmed(group["test_mse"])
        rows.append(
            {
                "panel": panel,
                "method": method,
                x: value,
                "trimmed_mean_mse": kept.mean(),
                "lowest_mse": kept.min(),
                "highest_mse": kept.max(),
                "median_mse": group["test_mse"].median(),
                "variance_of_g": (group["test_mse"] / group["relative_mse"]).mean(),
                "replicates": len(group),
            }
        )
    return pd.DataFrame(rows).sort_values(["method", x], ignore_index=True)


def _panel(pair: np.ndarray, metrics: pd.DataFrame, x: str, label: str, panel: str) -> pd.DataFrame:
    """Two axes, the upper one with what is not far below the variance of g, the lower with all."""
    drawn = summarize(metrics, x, panel)
    variance = drawn.groupby(x)["variance_of_g"].mean()
    for axes in pair:
        _draw_methods(axes, metrics, drawn, x)
        axes.plot(variance.index, variance, ":", color="grey", label="variance of g (constant)")
        axes.set(yscale="log")
    upper, lower = pair
    reached = [SHOWN * variance.min(), 2 * max(variance.max(), drawn["highest_mse"].max())]
    if np.isfinite(reached).all():
        upper.set_ylim(*reached)
    upper.set(ylabel="test mean squared error", title=panel)
    lower.set(xlabel=label, ylabel="whole range")
    return drawn


def _draw_methods(axes: Axes, metrics: pd.DataFrame, drawn: pd.DataFrame, x: str) -> None:
    for method, (color, style, name) in STYLES.items():
        rows = drawn[drawn["method"] == method]
        if rows.empty:
            continue
        mean = rows["trimmed_mean_mse"]
        bars = np.array([mean - rows["lowest_mse"], rows["highest_mse"] - mean]).clip(min=0)
        line = LINES.get(method, {"zorder": 3})
        axes.errorbar(rows[x], mean, bars, fmt=style, color=color, label=name, capsize=2.5, **line)
        points = metrics[metrics["method"] == method]
        axes.plot(points[x], points["test_mse"], ".", color=color, alpha=0.3, markersize=3)


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
        panel.axvline(d**2, color="grey", linewidth=0.8, alpha=0.6)
    axes[0, 1].annotate(
        "m = d²", (d**2, 1.01), xycoords=("data", "axes fraction"), color="grey", ha="center"
    )
    return drawn


@figure("fig4")
@figure("fig5")
def draw_by_sparsity(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figures 4 and 5 of paper A: two panels for each sparsity, above what the whole range hides.

    A point is the mean without the smallest and the largest error, a bar the range of the others
    (Appendix E); dots are all replicates.
    """
    metrics = tables["metrics"]
    sparsities = sorted(metrics["sparsity"].unique(), reverse=True)
    figure, axes = plt.subplots(
        2 * len(sparsities),
        2,
        figsize=(8.4, 4.6 * len(sparsities) + 0.6),
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
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure, pd.concat(drawn, ignore_index=True)


@figure("norm-schedules")
def draw_schedules(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Appendix E's training details: optimizers and schedules for scales and shifts, best rates."""
    metrics = tables["metrics"].query("method == 'best'")
    widths = sorted(metrics["target_width"].unique())
    figure, axes = plt.subplots(
        1, len(widths), figsize=(4.2 * len(widths), 3.4), sharey=True, squeeze=False
    )
    for panel, d in zip(axes[0], widths, strict=True):
        of_width = metrics[metrics["target_width"] == d]
        for optimizer, (color, marker) in OPTIMIZER_STYLES.items():
            rows = of_width[of_width["optimizer"] == optimizer]
            for place, schedule in enumerate(SCHEDULES):
                found = rows.loc[rows["schedule"] == schedule, "relative_mse"]
                if found.empty:
                    continue
                x = place + SHIFTS[optimizer]
                panel.plot([x] * len(found), found, ".", color=color, alpha=0.4, markersize=4)
                label = optimizer if place == 0 else None
                panel.plot(x, found.median(), marker, color=color, label=label)
        panel.set_xticks(range(len(SCHEDULES)), SCHEDULES)
        panel.set(yscale="log", title=f"d = {d}, m = {of_width['width'].iloc[0]}")
    axes[0, 0].set_ylabel("test mean squared error / variance of g")
    axes[0, -1].legend()
    columns = ["test_mse", "relative_mse", "learning_rate", "dead"]
    keys = ["target_width", "optimizer", "schedule"]
    return figure, metrics.groupby(keys, sort=False)[columns].median().reset_index()


@overview
def overview_bn_only(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the error while training, and where each method ends."""
    metrics = tables["metrics"]
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for method, rows in tables.get("curves", pd.DataFrame(columns=["method"])).groupby("method"):
        color, _, name = STYLES[method]
        for _, curve in rows.groupby("replicate"):
            axes.plot(curve["samples"], curve["test_mse"], color=color, alpha=0.3, linewidth=0.9)
        median = rows.groupby("samples")["test_mse"].median()
        axes.plot(median.index, median, color=color, label=name)
    for method, rows in metrics[metrics["learning_rate"].isna()].groupby("method"):
        color, _, name = STYLES[method]
        axes.axhline(rows["test_mse"].median(), color=color, linestyle="--", label=name)
    first = metrics.iloc[0]
    title = f"d = {first['target_width']}, m = {first['width']}, p = {first['sparsity']:g}"
    axes.set(yscale="log", xlabel="training samples", ylabel="test MSE", title=title)
    axes.legend()
    columns = ["test_mse", "relative_mse", "max_abs_error", "condition_number", "numerical_rank"]
    summary = metrics.groupby("method", sort=False)[columns].median().reset_index()
    return figure, summary
