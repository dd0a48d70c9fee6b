"""Drawing of study `rank_one`: Theorem 10, and the quick look at one run."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck.rank_one.tables import (
    NORM_SLOPE,
    NTK_EXPONENT,
    interpolants,
    slopes,
    with_logarithms,
)
from runner.results.claims import Tables
from runner.results.figures import figure, overview


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


@figure("bottleneck-theorems")
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


@overview
def overview_rank_one(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the figure, and means by N."""
    figure, metrics = draw_rank_one(tables)
    columns = ["excess", "train_cost", "ntk_trace", "jacobian"]
    return figure, metrics.groupby("samples")[columns].mean().reset_index()
