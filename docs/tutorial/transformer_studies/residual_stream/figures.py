"""Drawing of study `residual_stream`."""

import pandas as pd
from matplotlib.figure import Figure

from runner.results.claims import Tables
from runner.results.drawing import Drawing, Finding
from runner.results.style import name_ends, panel, sheet
from transformer_studies.names import NAMES


def say_orders(tables: Tables) -> str:
    """Return the headline: without normalization the stream has rank one, with pre-norm more.

    Its number is the median of r(H) - 1 after the last block with pre-norm.
    """
    metrics = tables["metrics"]
    last = metrics[metrics["block"] == metrics["block"].max()]
    kept = last.loc[last["normalization"] == "pre", "excess"].median()
    return (
        f"After {metrics['block'].max()} blocks the stream has nearly rank one without"
        f" normalization, and more with pre-norm (r(H) − 1 = {kept:.2g})"
    )


def draw(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw r(H) - 1 by block: medians and the range of the replicates."""
    metrics = tables["metrics"]
    grouped = metrics[metrics["block"] > 0].groupby(["normalization", "block"])["excess"]
    drawn = grouped.agg(["median", "min", "max"]).reset_index()
    picture, ((axes,),) = sheet(1, 1, right=1.8)
    axes.set(yscale="log", xlim=(1, max(2, drawn["block"].max())))
    ends = []
    for normalization, rows in drawn.groupby("normalization"):
        name = NAMES["normalization"][normalization]
        name.look.band(axes, rows["block"], rows["min"], rows["max"])
        name.look.line(axes, rows["block"], rows["median"])
        last = rows["median"].iloc[-1]
        text = f"{name.printed}: {last:.2f}" if last > 0.01 else name.printed
        ends.append((last, text, name.look))
    axes.set_ylim(1e-15, None)
    name_ends(axes, ends)
    panel(axes, "", "r(H) − 1 of the stream (r: lower bound of the rank)", "block")
    return picture, drawn


FIGURES = [
    Drawing(
        "residual-stream",
        draw,
        whose="ours",
        findings=[Finding(say_orders, holds=["collapse", "pre-norm-keeps"])],
        marks="lines: medians, bands: range",
        caption="The figure shows r(H) − 1 of the residual stream H by block, for three places of"
        " the normalization. r is a lower bound of the rank. Lines are medians, bands the range.",
    ),
]
