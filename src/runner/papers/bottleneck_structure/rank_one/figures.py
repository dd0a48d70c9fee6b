"""Drawing of study `rank_one`: Theorem 10; it is the preview as well."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck_structure.rank_one import tables as t
from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.style import BLUE, PLAIN, QUIET, SMALL, Look, guide, panel, sheet, ticks

FIT = Look(BLUE)


def say_rare(tables: Tables) -> str:
    """Say how many networks fit the fewest points, and how many the most."""
    few, many = t.counted(tables["metrics"]).reset_index().iloc[[0, -1]].to_dict("records")
    return (
        "Networks that underestimate the rank are rare, narrow and large:"
        f" {many['fit']} of {many['starts']} starts fit {many['samples']} points,"
        f" {few['fit']} of {few['starts']} fit {few['samples']}"
    )


def _every(axes: Axes, metrics: pd.DataFrame, column: str) -> None:
    """Every network against N, and the median of those that fit."""
    found = t.interpolants(metrics)
    missed = metrics.drop(found.index)
    cross = {"color": "#a6a6a6", "ms": 3.5, "mew": 0.9}
    axes.plot(1.09 * missed["samples"], missed[column], "x", **cross)
    FIT.each(axes, 0.92 * found["samples"], found[column])
    middle = found.groupby("samples")[column].median()
    FIT.line(axes, middle.index, middle)
    if len(middle):
        FIT.name_at(axes, middle.index, middle, "fit", middle.index[len(middle) // 3], (-8, 9))


def draw_rank_one(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Theorem 10: how rare rank-1 interpolants are, and the growth of their NTK and norm."""
    metrics = tables["metrics"].assign(narrow=lambda rows: rows["ntk_trace"] / rows["depth"])
    picture, ((left, middle, right),) = sheet(1, 3, height=4.0, gap=0.75)
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
    corner = {"ha": "right", "size": SMALL}
    most = counts["starts"].max()
    QUIET.name(left, 0.98, 0.93, f"of {most}", transform=left.transAxes, **corner)
    middle.set_yscale("log")
    _every(middle, metrics, "narrow")
    _every(right, metrics, "excess")
    right.set_ylim(0, None)
    medians = t.interpolants(metrics).groupby("samples")["narrow"].median()
    if len(medians):
        base = N[medians.index[0] <= N]
        growth = 0.35 * medians.iloc[0] * (base / base[0]) ** t.NTK_EXPONENT
        bound = t.NORM_SLOPE * np.log(base)
        guide(middle, base, growth)
        guide(right, base, bound)
        beyond = {"size": SMALL, "linespacing": 1.1}
        words = f"slope {t.NTK_EXPONENT:g}:\nbound,\nwithout $e^{{-c_1}}$"
        QUIET.name_at(middle, base, growth, words, base[-1] * 0.62, (10, -26), **beyond)
        QUIET.name_at(right, base, bound, "bound: log N", base[-1] * 0.75, (0, 11), **beyond)
    QUIET.name(middle, 0.98, 0.04, "× do not fit", transform=middle.transAxes, **corner)
    panel(left, "a", "rare: starts that fit", "training points N")
    panel(middle, "b", "narrow: tr Θ / L", "training points N")
    panel(right, "c", "large: ‖θ‖² − L", "training points N")
    return picture, metrics


HEADLINE = ["excess", "train_cost", "ntk_trace", "jacobian"]

FIGURES = [
    Drawing(
        "bottleneck-theorems",
        draw_rank_one,
        whose="ours",
        findings=[
            Finding(say_rare, holds=["interpolants-are-rare", "ntk-blows-up", "norm-lower-bound"])
        ],
        caption="Networks of bottleneck rank 1 that are trained to fit N values of a linear"
        " function of rank 2 on a square. (a) How many of the starts fit. (b) The largest trace of"
        " the NTK over the depth and (c) the norm above L. Dots fit, crosses do not, a little to"
        " the right; large dots are medians of the networks that fit. Dotted: the paper's lower"
        " bounds, from the first median on; in (b) without the factor that depends on the norm.",
    ),
]

overview = draw_rank_one
