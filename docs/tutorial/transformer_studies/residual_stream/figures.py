"""Drawing of study `residual_stream`."""

import pandas as pd
from matplotlib.figure import Figure

from runner.results.claims import Tables
from runner.results.figures import figure
from runner.results.style import BLACK, BLUE, VERMILION, subplots

LOOKS = {
    "none": ("no normalisation", BLACK, "o", "-"),
    "pre": ("pre-norm", BLUE, "s", "--"),
    "post": ("post-norm", VERMILION, "^", ":"),
}
"""Label, colour, marker and line of each normalisation."""


@figure("residual-stream", caption="Lines are medians over the replicates, bands their range.")
def draw(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """r(H) - 1 against the block: median over replicates, and their range."""
    metrics = tables["metrics"]
    grouped = metrics[metrics["block"] > 0].groupby(["normalization", "block"])["excess"]
    drawn = grouped.agg(["median", "min", "max"]).reset_index()
    picture, axes = subplots(size=(5, 3.6))
    for name, part in drawn.groupby("normalization"):
        label, colour, marker, line = LOOKS[name]
        every = max(1, len(part) // 8)
        axes.plot(
            part["block"],
            part["median"],
            line,
            label=label,
            color=colour,
            marker=marker,
            markevery=every,
        )
        axes.fill_between(part["block"], part["min"], part["max"], color=colour, alpha=0.15)
    axes.set(yscale="log", ylim=(1e-14, None), xlabel="blocks", ylabel="r(H) - 1 of the stream")
    axes.legend()
    return picture, drawn
