"""Drawings of study `constructions`: how exact paper A's theorems are in floating point."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.constructions.tables import full_rank_by_sparsity, random_targets
from runner.papers.norm_tuning.looks_before import THEOREMS
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview
from runner.results.rows import nonempty
from runner.results.style_before import (
    DASHED,
    GREY,
    HOLLOW,
    Look,
    guide,
    ordered,
    picture,
    points,
    subplots,
)

DODGES = np.geomspace(0.96, 1.04, len(THEOREMS))
APART = 1.2  # least ratio of two widths whose labels fit side by side
DECADES = 20  # between the ticks of the mpmath panel


def series_of(metrics: pd.DataFrame) -> pd.Series:
    """The key in THEOREMS of each row: the theorem, with those of width above d^2 apart."""
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


@figure(
    "constructions",
    caption="Largest difference |f(x) − g(x)| of the constructed network and its random target at"
    " points of the unit sphere: in double precision against the width d (left; of each theorem the"
    " depth that was run at the most widths), and for Theorem 2 against the block size k (middle),"
    " above in double precision, below with many digits (hollow markers). Points are medians over"
    " the replicates, bars their whole range; dashed, with hollow markers: machine epsilon times"
    " the condition number, median. Right: share of sparse random systems K of full rank against"
    " the share p of weights that are not zero, scaled as the paper conjectures (above) and proves"
    " (below); bars are standard errors, lines the probability that no unit is cut off, dotted the"
    " smallest p of the proof.",
)
def draw_constructions(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Error against d; error of the deep construction against k; full rank against sparsity."""
    metrics = tables["metrics"]
    panels = {
        "error by d": error_by_width(metrics),
        "error by k": error_by_block(metrics),
        "full rank": full_rank_by_sparsity(metrics),
    }
    figure = picture(size=(11.5, 5.2))
    left, middle, right = figure.subfigures(1, 3, width_ratios=[1.3, 1, 1])
    widths = left.subplots()
    with or_empty(widths):
        _draw_widths(widths, nonempty(panels["error by d"], "float64 systems of full rank"))
    blocks = middle.subplots(2, 1, sharex=True, height_ratios=[1.5, 1])
    with or_empty(*blocks):
        _draw_blocks(*blocks, nonempty(panels["error by k"], "several block sizes of one width"))
    sparsities = right.subplots(2, 1)
    with or_empty(*sparsities):
        _draw_sparsities(*sparsities, nonempty(panels["full rank"], "sparse networks at m = d²"))
    for part, axes in ((left, widths), (middle, blocks[0]), (right, sparsities[0])):
        handles, labels = axes.get_legend_handles_labels()
        if handles:
            narrow = {"ncols": 2, "handlelength": 1.6, "columnspacing": 1.0}
            part.legend(handles, labels, loc="outside lower center", **narrow)
    return figure, pd.concat([rows.assign(panel=name) for name, rows in panels.items()])


def _summary(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    groups = rows.groupby(keys)
    errors = groups["max_abs_error"].agg(["median", "min", "max", "size"]).reset_index()
    errors.columns = [*keys, "median_error", "lowest_error", "highest_error", "replicates"]
    errors["epsilon_condition"] = (
        np.finfo(float).eps * groups["condition_number"].median().to_numpy()
    )
    return errors


def _bars(
    axes: Axes, x: str, rows: pd.DataFrame, look: Look, dodge: float = 1.0, **options
) -> None:
    """Medians with the range of the replicates; `dodge` moves them sideways on a log axis."""
    median = rows["median_error"]
    lengths = np.array([median - rows["lowest_error"], rows["highest_error"] - median])
    bars = {"capsize": points(1.5), "elinewidth": points(0.8), "linestyle": "-"}
    axes.errorbar(rows[x] * dodge, median, lengths, **look.both | bars | options)


def _allowed(axes: Axes, x: str, rows: pd.DataFrame, look: Look) -> None:
    """What rounding allows: machine epsilon times the condition number."""
    thin = {"linestyle": DASHED, "linewidth": points(0.9), "markersize": points(3), "alpha": 0.6}
    axes.plot(rows[x], rows["epsilon_condition"], **look.both | HOLLOW | thin)


def _draw_widths(axes: Axes, drawn: pd.DataFrame) -> None:
    for dodge, (series, look) in zip(DODGES, THEOREMS.items(), strict=True):
        rows = drawn[drawn["series"] == series]
        if rows.empty:
            continue
        _bars(axes, "target_width", rows, look, dodge, label=look.label.format(**rows.iloc[0]))
        _allowed(axes, "target_width", rows, look)
    axes.plot([], [], linestyle=DASHED, color=GREY, label="epsilon × condition")
    axes.set(xscale="log", yscale="log", xlabel="target width d", ylabel="largest |f(x) − g(x)|")
    axes.set_title("float64: exact up to rounding")
    widths = sorted(drawn["target_width"].unique())
    axes.set_xticks(widths, labels=_apart(widths))
    axes.minorticks_off()


def _apart(widths: list[int]) -> list[str]:
    """Labels of ticks on a log axis, empty where one would touch the label before it."""
    labels, last = [], 0.0
    for width in widths:
        fits = width >= APART * last
        labels.append(str(width) if fits else "")
        last = width if fits else last
    return labels


def _draw_blocks(double: Axes, digits: Axes, drawn: pd.DataFrame) -> None:
    """Above: float64; below: mpmath, many decades down."""
    for width, look in ordered(sorted(drawn["target_width"].unique())).items():
        rows = drawn[(drawn["target_width"] == width) & (drawn["dtype"] == "float64")]
        _bars(double, "block", rows, look, label=f"d = {width}")
        _allowed(double, "block", rows, look)
        exact = drawn[(drawn["target_width"] == width) & (drawn["dtype"] == "mpmath")]
        _bars(digits, "block", exact, look, **HOLLOW)
    double.set(yscale="log", ylabel="largest error, float64", title="Theorem 2 by block size")
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

    for width, look in ordered(sorted(drawn["target_width"].unique())).items():
        rows = drawn[drawn["target_width"] == width]
        unit = np.log(width) / width
        p = np.linspace(0.01, 1, 400)
        predicted = [live_units_probability(width, width, width**2, each) for each in p]
        for axes, scale in ((log, unit), (root, np.sqrt(unit))):
            axes.plot(p / scale, predicted, color=look.color, linewidth=points(1))
            bars = {"markersize": points(3.5), "elinewidth": points(0.8), "label": f"d = {width}"}
            found = rows["fraction"], rows["standard_error"]
            axes.errorbar(rows["sparsity"] / scale, *found, **look.dots | bars)
    log.set(xlim=(0, 4.5), xlabel="p / (log d / d)", title="Theorem 3: K has full rank")
    root.set(xlim=(0, 2.2), xlabel="p / √(log d / d)")
    root.axvline(2, **guide())
    log.plot([], [], label="smallest p of the proof", **guide())
    log.plot([], [], color=GREY, linewidth=points(1), label="no unit cut off")
    for axes in (log, root):
        axes.set(ylim=(-0.05, 1.08), ylabel="probability")


@overview
def overview_constructions(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the error of each replicate against what rounding allows."""
    metrics = tables["metrics"]
    figure, axes = subplots(size=(5, 3.4))
    axes.plot(metrics["replicate"], metrics["max_abs_error"], "o", label="largest |f(x) − g(x)|")
    axes.plot(metrics["replicate"], metrics["rounding"], "_", label="n ε condition number")
    first = metrics.iloc[0]
    title = f"{first['theorem']}, d = {first['target_width']}, {first['target']} target"
    axes.set(yscale="log", xlabel="replicate", title=title)
    axes.legend()
    columns = ["max_abs_error", "agreement", "condition_number", "equations", "numerical_rank"]
    return figure, metrics[["replicate", *columns, "structural_rank"]]
