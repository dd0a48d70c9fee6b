"""Draw the figure of study `rank_one`, which is also its preview."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck_structure.rank_one import tables as t
from runner.results.drawing import Drawing, Finding
from runner.results.rows import Tables
from runner.results.style import BLUE, PLAIN, QUIET, SMALL, Look, guide, panel, sheet, ticks

FIT = Look(BLUE)


def say_fewer(tables: Tables) -> str:
    """Return the headline: how many networks fit the smallest and the largest number of points."""
    few, many = t.counted(tables["metrics"]).reset_index().iloc[[0, -1]].to_dict("records")
    rest = f"{many['fit']} of {many['starts']} fit" if many["fit"] else "none fits"
    return (
        f"With more points fewer networks of rank 1 fit: {few['fit']} of {few['starts']}"
        f" initializations fit {few['samples']} points, {rest} {many['samples']} points"
    )


def _every(axes: Axes, metrics: pd.DataFrame, column: str) -> None:
    """Draw a column against N: dots fit, crosses do not, large dots are medians of fits."""
    fitting = t.interpolants(metrics)
    missed = metrics.drop(fitting.index)
    cross = {"color": "#8c8c8c", "ms": 3.5, "mew": 0.9, "zorder": 4}
    axes.plot(1.14 * missed["samples"], missed[column], "x", **cross)
    FIT.each(axes, 0.92 * fitting["samples"], fitting[column])
    middle = fitting.groupby("samples")[column].median()
    FIT.line(axes, middle.index, middle)
    if len(middle):
        FIT.name_at(axes, middle.index, middle, "fits", middle.index[len(middle) // 3], (-8, 9))


def draw_rank_one(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw against N the fraction of networks that fit, their tangent kernel, and their norm.

    N is the number of training points. Returns the picture, and the table `metrics` with the column
    `narrow`, the trace of the kernel divided by L.
    """
    metrics = tables["metrics"].assign(narrow=lambda rows: rows["ntk_trace"] / rows["depth"])
    picture, ((left, middle, right),) = sheet(1, 3, height=4.2, gap=0.85, top=0.65)
    counts = t.counted(metrics)
    N = counts.index.to_numpy(float)
    for axes in (left, middle, right):
        axes.set(xscale="log", xlim=(0.78 * N[0], 1.28 * N[-1]))
        ticks(axes.xaxis, N)
    left.bar(N, counts["fit"] / counts["starts"], width=0.2 * N, color=BLUE)
    for n, starts, fit in counts.itertuples():
        PLAIN.name(left, n, fit / starts + 0.035, str(fit), size=SMALL)
    left.set_ylim(0, 1.08)
    ticks(left.yaxis, [0, 0.25, 0.5, 0.75, 1])
    left.set_ylabel(f"fraction of {counts['starts'].max()} initializations")
    middle.set_yscale("log")
    fitting = t.interpolants(metrics)
    low, high = fitting["narrow"].min(), fitting["narrow"].max()
    if np.isfinite(low):
        middle.set_ylim(low / 4, 6 * max(high, metrics["narrow"].median()))
    _every(middle, metrics, "narrow")
    _every(right, metrics, "excess")
    if np.isfinite(top := metrics["excess"].max()):
        right.set_ylim(0, 1.18 * top)
    medians = fitting.groupby("samples")["narrow"].median()
    if len(medians):
        base = N[medians.index[0] <= N]
        growth = 0.35 * medians.iloc[0] * (base / base[0]) ** t.NTK_EXPONENT
        bound = t.NORM_SLOPE * np.log(base)
        guide(middle, base, growth)
        guide(right, base, bound)
        beyond = {"size": SMALL, "linespacing": 1.1}
        QUIET.note(middle, 0.98, 0.03, "slope of\nthe bound: N²", ha="right", va="bottom")
        QUIET.name_at(right, base, bound, "bound: log N", base[-1], (1, 10), ha="right", **beyond)
    panel(left, "a", "networks that fit", "training points N")
    panel(middle, "b", "narrowness:\ntrace of the kernel / L", "training points N")
    panel(right, "c", "norm: ‖θ‖² − L", "training points N")
    return picture, metrics


HEADLINE = ["excess", "train_cost", "ntk_trace", "jacobian"]

FIGURES = [
    Drawing(
        "bottleneck-theorems",
        draw_rank_one,
        marks="dots: fits (large: medians), crosses: no fit",
        whose="supplementary",
        findings=[
            Finding(say_fewer, holds=["interpolants-are-rare"]),
        ],
        caption="The target function has rank 2. (a) shows how many initializations fit, (b) the"
        " largest trace of the tangent kernel divided by the depth L, and (c) the squared"
        " parameter norm minus L, against N. Dots are networks that fit (large: medians),"
        " crosses networks that do not. Dotted lines are the paper's lower bounds, in (b) at"
        " arbitrary height.",
    ),
]

overview = draw_rank_one
