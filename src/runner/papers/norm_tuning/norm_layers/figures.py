"""Draw the figures of study `norm_layers`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning import looks
from runner.papers.norm_tuning.norm_layers import config
from runner.results.drawing import Drawing, Finding
from runner.results.rows import Tables, nonempty, select, spread
from runner.results.style import (
    DASHED,
    NAVY,
    QUIET,
    SKY,
    SMALL,
    Look,
    key,
    level,
    name_ends,
    panel,
    rail,
    shades,
    sheet,
    ticks,
)

FLOOR, TOP = 1e-3, 1e2
"""Ends of the axis of errors, in units of the target's variance."""

PERCENT = (1e-3, 1e-2, 0.1, 1, 10, 100)
"""Values at which the axis of errors has ticks."""
WITH_BIASES = " with biases"
LEAST = "● least possible"
"""Name of the line of lower bounds."""
KINDS = {"batch_norm": "BatchNorm", "layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
"""Kinds of layers, one panel for each."""


def say_layers(tables: Tables) -> str:
    """Return the headline of figure `norm-layers`, with a lower bound of the error in LayerNorm.

    The bound is the smallest of all networks with LayerNorm without biases. Raises NoRows if
    LayerNorm was not run.
    """
    least = select(tables["metrics"], layer="layer_norm")["lower_bound"].min()
    return (
        "The construction is exact in BatchNorm with fixed statistics; LayerNorm without biases"
        f" leaves errors above {int(100 * least)} % for all γ, β"
    )


def series(rows: pd.DataFrame, kind: str) -> Iterator[tuple[str, Look, pd.Series]]:
    """Yield the lines of a panel: name, look, and errors indexed by the target width d.

    rows: the table `metrics`. kind: the kind of layer, `batch_norm`, `layer_norm` or `rms_norm`.
    """
    plain, biased = (rows[rows["layer"] == layer] for layer in (kind, kind + WITH_BIASES))
    if kind == "batch_norm":
        sizes = sorted(set(plain["batch_size"]) - {0})
        for size in dict.fromkeys([*sizes[:1], *sizes[len(sizes) // 2 :][:1], *sizes[-1:]]):
            look = replace(looks.BATCH_STATISTICS, hue=shades(sizes, SKY, NAVY)[size])
            yield f"batch of {size:,}", look, _errors(plain, batch_size=size)
        yield "■ fixed statistics", looks.CONSTRUCTION, _errors(plain, batch_size=0)
        biases = replace(looks.CONSTRUCTION, hollow=True, dashes=DASHED)
        yield "□ with biases", biases, _errors(biased, batch_size=0)
        return
    set_by_formula, fitted = {"batch_size": 0, "mode": "evaluation"}, {"mode": "fitted"}
    yield LEAST, looks.LEAST, _errors(plain, "lower_bound", **set_by_formula)
    yield "◆ construction", looks.LAYER_NORM, _errors(plain, **set_by_formula)
    biases = replace(looks.LAYER_NORM, hollow=True, dashes=DASHED)
    yield "◇ with biases", biases, _errors(biased, **set_by_formula)
    yield "○ fitted, biases", looks.FITTED, _errors(biased, **fitted)


def _errors(rows: pd.DataFrame, column: str = "relative_mse", **values: Any) -> pd.Series:
    """Return a column of the rows that have given values, indexed by the target width d.

    Unknown errors become infinite; then all are cut at the top of the axis. values: by column.
    """
    for name, value in values.items():
        rows = rows[rows[name] == value]
    return rows.set_index("target_width")[column].fillna(np.inf).clip(upper=TOP)


def _point_out(axes: Axes, bounds: pd.Series) -> None:
    """Mark the smallest of the lower bounds by a dot, and point to it from its number below.

    bounds: the lower bounds, indexed by the target width d.
    """
    width, least = bounds.index[bounds.argmin()], bounds.min()
    axes.plot(width, least, "o", color=looks.LEAST.ink, markersize=4, zorder=4)
    layout: dict = {"textcoords": axes.transAxes, "size": SMALL, "va": "top"}
    layout |= {"xytext": (0.55, 0.28), "arrowprops": {"arrowstyle": "-", "shrinkB": 3}}
    looks.LEAST.name(axes, width, least, f"smallest of all:\n{100 * least:.1f} %", **layout)


def draw_norm_layers(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `norm-layers`: errors against the target width d.

    There is a panel for each kind of normalization layer, and a line for each way to set gamma and
    beta. Returns the picture, and a table with median and range of the errors of each line and d.
    Raises NoRows if the table `metrics` is empty.
    """
    metrics = nonempty(tables["metrics"], "layer")
    rooms = {0: 1.2, 1: 1.2}
    picture, (panels,) = sheet(1, 3, left=0.95, gap=0.25, right=1.4, names=rooms, sharey=True)
    few = metrics["target_width"].nunique() < 4
    for axes, letter, (kind, name) in zip(panels, "abc", KINDS.items(), strict=True):
        lines, ends = list(series(metrics, kind)), []
        position = rail(axes, FLOOR, TOP, "≈ 0" if letter == "a" else "", lanes=2)
        axes.spines["left"].set_bounds(FLOOR, TOP)
        for number, (text, look, errors) in enumerate(lines):
            heights = pd.Series(position(errors, number % 2), errors.index)
            middle = heights.groupby("target_width").median()
            look.each(axes, heights.index, heights)
            look.line(axes, middle.index, middle)
            ends += [(height, text, look) for height in middle.iloc[-1:]]
        if not any((errors < FLOOR).any() for _, _, errors in lines):
            axes.patches[-1].remove()  # no mark is in the shaded strip
        for look in [look for _, look, errors in lines if (errors >= TOP).any()][:1]:
            place = {"ha": "right", "size": SMALL, "transform": axes.get_yaxis_transform()}
            look.name(axes, 1.0, 1.7 * TOP, "↑ > 10,000 %", **place)
        level(axes, 1.0)
        if letter == "a":
            key(axes, {"predicting\nthe mean": QUIET}, loc="upper left")
        if letter == "b" and len(bounds := {name: errors for name, _, errors in lines}[LEAST]):
            _point_out(axes, bounds)
        ticks(axes.yaxis, PERCENT, [f"{100 * value:,g} %" for value in PERCENT])
        axes.set_ylim(top=3 * TOP)
        ticks(axes.xaxis, sorted(metrics["target_width"].unique())[:: 1 if few else 2])
        name_ends(axes, ends)
        title = f"{'error, ' if letter == 'a' else ''}{name}"
        panel(axes, letter, title, "target width d")
    keys = ["layer", "mode", "batch_size", "target_width"]
    return picture, spread(metrics, keys, ["relative_mse", "lower_bound"])


HEADLINE = ["relative_mse", "max_abs_error"]

FIGURES = [
    Drawing(
        "norm-layers",
        draw_norm_layers,
        whose="our experiment",
        findings=[
            Finding(say_layers, holds=["batch-norm-exact", "layer-norm-cannot", "biases-undercut"])
        ],
        marks="lines: medians, dots: replicates, hollow: with biases",
        caption="(a) shows the test error, in percent of the target's variance, against the target"
        " width d in BatchNorm, (b) in LayerNorm and (c) in RMSNorm. In (b, c), black lines are"
        " the smallest error that any γ and β can reach without biases, and purple lines are"
        " γ and β fitted by L-BFGS. All other lines are the construction. Networks with hollow"
        " marks have random frozen biases. Lines are medians, dots networks. Errors below 0.1 %"
        " are at ≈ 0, and errors above 10,000 % at the top.",
        shows={"layer": [layer + b for b in ("", WITH_BIASES) for layer in config.LAYERS]},
    ),
]
