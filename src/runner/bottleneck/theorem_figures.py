"""Drawings of paper D's Theorem 10 and Example 20."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.claims import Tables

TARGET_RANK = 2
"""k* of the function that study `rank_one` fits."""
NTK_EXPONENT = 4 - 4 / TARGET_RANK
"""Theorem 10: Theta >= c L e^{-c_1} N^{4 - 4/k*}."""
NORM_SLOPE = 2 * (1 - 1 / TARGET_RANK)
"""Section 3.1: c_1 >= 2 (1 - 1/k*) log N + const."""


def with_logarithms(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows with `log_ntk`, log(Tr Theta / L), and `log_ntk_plus_excess`, that plus c_1."""
    log_ntk = np.log(metrics["ntk_trace"] / metrics["depth"])
    return metrics.assign(log_ntk=log_ntk, log_ntk_plus_excess=log_ntk + metrics["excess"])


def interpolants(metrics: pd.DataFrame) -> pd.DataFrame:
    """The networks that fit their points.

    Their cost is below a tenth of what one point adds to the zero network's cost of about 1.
    """
    return metrics[metrics["train_cost"] * metrics["samples"] < 0.1]


def slopes(metrics: pd.DataFrame, column: str) -> pd.Series:
    """The slope of a column against log N for every replicate with three sizes N or more."""
    found = {
        replicate: np.polyfit(np.log(group["samples"]), group[column], 1)[0]
        for replicate, group in metrics.groupby("replicate")
        if len(group) >= 3
    }
    return pd.Series(found, dtype=float)


def _growth(axes: Axes, metrics: pd.DataFrame, column: str, slope: float, meaning: str) -> None:
    fitting = interpolants(metrics)
    missed = metrics.drop(fitting.index)
    axes.plot(missed["samples"], missed[column], "x", color="grey", alpha=0.6, label="misfits")
    axes.plot(fitting["samples"], fitting[column], ".", color="tab:blue", alpha=0.5)
    mean = fitting.groupby("samples")[column].mean()
    found = slopes(fitting, column).mean()
    axes.plot(mean.index, mean, "o-", color="tab:blue", label=f"fits, slope {found:.2f}")
    N = mean.index.to_numpy()
    line = mean.to_numpy()[:1] + slope * np.log(N / N[:1])
    axes.plot(N, line, "--", color="tab:orange", label=f"slope {slope:g}: {meaning}")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("training points N")
    axes.legend()


def draw_rank_one(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Theorem 10: growth of the NTK and of the norm of rank-1 interpolants."""
    metrics = with_logarithms(tables["metrics"])
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.6))
    _growth(axes[0], metrics, "log_ntk", NTK_EXPONENT, "theorem without $e^{-c_1}$")
    axes[0].set(ylabel=r"log of the largest Tr $\Theta(x,x)/L$", title="narrowness")
    _growth(axes[1], metrics, "excess", NORM_SLOPE, "lower bound")
    axes[1].set(ylabel=r"$c_1 = \|\theta\|^2 - L$", title="norm")
    _growth(axes[2], metrics, "log_ntk_plus_excess", NTK_EXPONENT, "lower bound")
    axes[2].set(ylabel=r"log Tr $\Theta / L$ + $c_1$", title="Theorem 10")
    return figure, metrics


def overview_rank_one(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the figure, and means by N."""
    figure, metrics = draw_rank_one(tables)
    columns = ["excess", "train_cost", "ntk_trace", "jacobian"]
    return figure, metrics.groupby("samples")[columns].mean().reset_index()


def draw_example20(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Example 20: the excess norm falls while the middle representations grow."""
    metrics = tables["metrics"]
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.5))
    colors = plt.cm.viridis(np.linspace(0.1, 0.8, metrics["exponent"].nunique()))
    for color, (exponent, rows) in zip(colors, metrics.groupby("exponent"), strict=True):
        label = rf"$\gamma = {exponent:g}$"
        measured = rows["parameter_norm"] - 3 * rows["depth"]
        axes[0].plot(rows["depth"], measured, "o", color=color)
        axes[0].plot(rows["depth"], rows["excess"], color=color, label=label)
        axes[1].plot(rows["depth"], rows["middle_lipschitz"], "o-", color=color, label=label)
    axes[0].set(ylabel=r"$\|\theta\|^2 - 3L$ (line: closed form)", title="norm")
    axes[1].set(
        ylabel=r"largest Lipschitz constant of $\tilde\alpha_\ell$", title="representations"
    )
    for panel in axes:
        panel.set(xscale="log", yscale="log", xlabel="depth L")
        panel.legend(title=r"$\epsilon = L^{-\gamma}$")
    return figure, metrics


def overview_example20(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the figure and its table."""
    return draw_example20(tables)
