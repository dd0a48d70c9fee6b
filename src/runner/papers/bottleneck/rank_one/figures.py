"""Drawing of study `rank_one`: Theorem 10, and the quick look at one run."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck.looks import BOUND, FIT, MISFIT
from runner.papers.bottleneck.rank_one.tables import (
    NORM_SLOPE,
    NTK_EXPONENT,
    interpolants,
    slopes,
    with_logarithms,
)
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.style_before import points, subplots

PANELS = {
    "log_ntk": (NTK_EXPONENT, r"log of the largest Tr $\Theta(x,x)/L$", "narrowness"),
    "excess": (NORM_SLOPE, r"$c_1 = \|\theta\|^2 - L$", "norm"),
    "log_ntk_plus_excess": (NTK_EXPONENT, r"log Tr $\Theta / L$ + $c_1$", "Theorem 10"),
}
"""By column: the slope in log N that the paper has, the label and the title of its panel."""


def _growth(axes: Axes, metrics: pd.DataFrame, column: str, slope: float) -> None:
    """Every network against N, the mean of those that fit, and a line of the paper's slope."""
    fitting = interpolants(metrics)
    missed = metrics.drop(fitting.index)
    axes.plot(missed["samples"], missed[column], alpha=0.6, label=MISFIT.label, **MISFIT.dots)
    small = {"markersize": points(3), "alpha": 0.6, "label": FIT.label}
    axes.plot(fitting["samples"], fitting[column], **FIT.dots | small)
    mean = fitting.groupby("samples")[column].mean()
    axes.plot(mean.index, mean, label="their mean", markersize=points(6), **FIT.both)
    N = mean.index.to_numpy()
    line = mean.to_numpy()[:1] + slope * np.log(N / N[:1])
    axes.plot(N, line, label="the paper's slope", **BOUND.line)
    ticks = sorted(metrics["samples"].unique())
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("training points N")


def say_rank_one(tables: Tables) -> str:
    """Panels and marks of the figure, and the slopes."""
    metrics = with_logarithms(tables["metrics"])
    fitting = interpolants(metrics)
    found = [
        f"{slopes(fitting, column).mean():.2f} beside {slope:g} ({title})"
        for column, (slope, _, title) in PANELS.items()
    ]
    return (
        "Networks of bottleneck rank 1 that are trained to fit N values of a linear function of"
        " rank 2 on a square, every replicate, and the mean of those that fit. Dashed, from the"
        " mean at the smallest N: the slope in log N of Theorem 10 without the factor of the norm"
        " (left), and of the lower bounds on the norm (middle) and on the sum of both (right)."
        f" Slopes found, mean over the replicates, beside the paper's: {', '.join(found)}."
    )


@figure("bottleneck-theorems", caption=say_rank_one)
def draw_rank_one(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Theorem 10: growth of the NTK and of the norm of rank-1 interpolants."""
    metrics = with_logarithms(tables["metrics"])
    picture, axes = subplots(1, 3, size=(11.5, 3.8))
    for panel, (column, (slope, label, title)) in zip(axes, PANELS.items(), strict=True):
        _growth(panel, metrics, column, slope)
        panel.set(ylabel=label, title=title)
    handles, labels = axes[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=4)
    return picture, metrics


@overview
def overview_rank_one(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the figure, and means by N."""
    picture, metrics = draw_rank_one(tables)
    columns = ["excess", "train_cost", "ntk_trace", "jacobian"]
    return picture, metrics.groupby("samples")[columns].mean().reset_index()
