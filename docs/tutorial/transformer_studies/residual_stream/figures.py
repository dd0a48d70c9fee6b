"""Drawing of study `residual_stream`."""

import pandas as pd
from matplotlib.figure import Figure

from runner.results.claims import Tables
from runner.results.drawing import Drawing, Finding
from runner.results.style import BLUE, DASHED, DOTTED, INK, VERMILION, Look, name_ends, panel, sheet

LOOKS = {
    "none": ("no normalization", Look(INK, "")),
    "pre": ("pre-norm", Look(BLUE, "", DASHED)),
    "post": ("post-norm", Look(VERMILION, "", DOTTED)),
}
"""Name and look of each normalization."""


def say_orders(tables: Tables) -> str:
    """Return the headline: the distance of each stream from rank one."""
    metrics = tables["metrics"]
    last = metrics[metrics["block"] == metrics["block"].max()]
    ends = last.groupby("normalization")["excess"].median()
    words = ", ".join(f"{LOOKS[name][0]} {end:.0e}" for name, end in ends.sort_values().items())
    return f"After {metrics['block'].max()} blocks r(H) − 1 of the stream is: {words}"


def draw(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw r(H) - 1 by block: medians and the range of the replicates."""
    metrics = tables["metrics"]
    grouped = metrics[metrics["block"] > 0].groupby(["normalization", "block"])["excess"]
    drawn = grouped.agg(["median", "min", "max"]).reset_index()
    picture, ((axes,),) = sheet(1, 1, right=1.8)
    axes.set(yscale="log", xlim=(1, max(2, drawn["block"].max())))
    ends = []
    for name, rows in drawn.groupby("normalization"):
        text, look = LOOKS[name]
        look.band(axes, rows["block"], rows["min"], rows["max"])
        look.line(axes, rows["block"], rows["median"])
        ends.append((rows["median"].iloc[-1], text, look))
    axes.set_ylim(1e-14, None)
    name_ends(axes, ends)
    panel(axes, "a", "r(H) − 1 of the stream", "block")
    return picture, drawn


FIGURES = [
    Drawing(
        "residual-stream",
        draw,
        whose="ours",
        findings=[Finding(say_orders, holds=["collapse", "pre-norm-keeps"])],
        marks="lines: medians, bands: range",
        caption="r(H) − 1 of the residual stream by block, for three places of the normalization."
        " Lines are medians over the replicates, bands their range.",
    ),
]
