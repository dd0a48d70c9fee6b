"""Draw the figure of study `rank_one`, which is also its preview."""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck_structure.rank_one import tables as t
from runner.results.drawing import Drawing, Finding
from runner.results.rows import Tables
from runner.results.style import BLUE, PLAIN, QUIET, SMALL, Look, guide, panel, sheet, ticks

FIT = Look(BLUE)


def say_fewer(tables: Tables, grows: str = "") -> str:
    """Return the headline: how many networks fit the smallest and the largest number of points.

    grows: the end of the sentence, GROWS or nothing.
    """
    few, many = t.counted(tables["metrics"]).reset_index().iloc[[0, -1]].to_dict("records")
    rest = f"{many['fit']} fit" if many["fit"] else "none fits"
    return (
        f"With more points fewer rank-1 networks fit ({few['fit']} of {few['starts']} fit"
        f" {few['samples']} points, {rest} {many['samples']}){grows}"
    )


GROWS = "; their kernels grow"
"""End of the headline if the claim holds that tangent kernels grow with N."""


def _every(axes: Axes, metrics: pd.DataFrame, column: str) -> None:
    """Draw a column against N: dots fit, crosses do not, large dots are medians of fits."""
    fitting = t.interpolants(metrics)
    missed = metrics.drop(fitting.index)
    cross = {"color": "#8c8c8c", "ms": 3.5, "mew": 0.9, "zorder": 4}
    axes.plot(1.14 * missed["samples"], missed[column], "x", **cross)
    if len(missed):
        most = missed["samples"].max()
        lowest = missed.loc[missed["samples"] == most, column].min()
        below: dict = {"xytext": (0, -12), "textcoords": "offset points", "size": SMALL}
        QUIET.name(axes, 1.14 * most, lowest, "no fit", **below)
    FIT.each(axes, 0.92 * fitting["samples"], fitting[column])
    middle = fitting.groupby("samples")[column].median()
    FIT.line(axes, middle.index, middle)
    if len(middle):
        between = 0.92 * float(np.sqrt(middle.index[0] * middle.index[:2][-1]))  # columns of dots
        FIT.name_at(axes, middle.index, middle, "fits", between, (0, 14))


def draw_rank_one(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw against N how many networks fit (a), and the size of their tangent kernel (b).

    N is the number of training points. Returns the picture, and the table `metrics` with the column
    `narrow`, the trace of the kernel divided by L.
    """
    metrics = tables["metrics"].assign(narrow=lambda rows: rows["ntk_trace"] / rows["depth"])
    picture, ((left, right),) = sheet(1, 2, height=4.2, gap=1.0, right=0.75)
    counts = t.counted(metrics)
    N = counts.index.to_numpy(float)
    for axes in (left, right):
        axes.set(xscale="log", xlim=(0.78 * N[0], 1.28 * N[-1]))
        ticks(axes.xaxis, N)
    starts = counts["starts"].max()
    left.bar(N, counts["fit"], width=0.2 * N, color=BLUE)
    for n, _, fit in counts.itertuples():
        PLAIN.name(left, n, fit + 0.035 * starts, str(fit))
    left.set_ylim(0, 1.08 * starts)
    left.yaxis.get_major_locator().set_params(integer=True)
    right.set_yscale("log")
    fitting = t.interpolants(metrics)
    low, high = fitting["narrow"].min(), fitting["narrow"].max()
    if np.isfinite(low):
        right.set_ylim(low / 4, 6 * max(high, metrics["narrow"].median()))
    _every(right, metrics, "narrow")
    medians = fitting.groupby("samples")["narrow"].median()
    if len(medians):
        base = N[medians.index[0] <= N]
        growth = 0.35 * medians.iloc[0] * (base / base[0]) ** t.NTK_EXPONENT
        guide(right, base, growth)
        at = base[len(base) // 2]
        QUIET.name_at(right, base, growth, "slope of the\nbound: N²", at, (9, -26), ha="left")
    panel(left, "a", f"networks that fit, of {starts}", "training points N")
    panel(right, "b", "trace of the tangent kernel / depth L", "training points N")
    return picture, metrics


HEADLINE = ["excess", "train_cost", "ntk_trace", "jacobian"]

FIGURES = [
    Drawing(
        "bottleneck-theorems",
        draw_rank_one,
        marks="dots: fits (large: medians), crosses: no fit",
        whose="supplementary",
        findings=[
            Finding(
                partial(say_fewer, grows=GROWS), holds=["interpolants-are-rare", "ntk-blows-up"]
            ),
            Finding(say_fewer, holds=["interpolants-are-rare"]),
        ],
        caption="The target function has rank 2. (a) shows how many initializations fit, (b) the"
        " largest trace of the tangent kernel divided by the depth L, against N. Dots are networks"
        " that fit (large: medians), crosses networks that do not. The dotted line is the growth of"
        " the paper's lower bound, at arbitrary height. The squared parameter norm is in the"
        " figure's table.",
    ),
]

overview = draw_rank_one
