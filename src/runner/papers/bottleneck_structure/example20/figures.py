"""Drawing of study `example20`, which is its preview as well."""

import pandas as pd
from matplotlib.figure import Figure

from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.rows import select
from runner.results.style import BLUE, INK, Look, name_ends, panel, sheet, ticks

BOLD = 0.8
"""The exponent of the bold line: both limits are seen there."""

HIGHEST = 3e7
"""Of panel (b): beyond it the other lines could not be told apart."""


def say_diverge(tables: Tables) -> str:
    """Excess and Lipschitz constant at the first and the last depth."""
    rows = select(tables["metrics"], exponent=BOLD).sort_values("depth")
    start, end = rows.iloc[0], rows.iloc[-1]
    return (
        f"The norm tends to its limit (excess {start['excess']:.1f} to {end['excess']:.3f}) while"
        f" the hidden layers diverge (Lipschitz constant {start['middle_lipschitz']:.1f} to"
        f" {end['middle_lipschitz']:.0f})"
    )


def draw_example20(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Example 20: the excess norm falls while the middle representations grow."""
    metrics = tables["metrics"].sort_values("depth")
    picture, ((left, right),) = sheet(1, 2, height=4.0, gap=1.5, right=0.85)
    depths = metrics["depth"]
    span = (0.8 * depths.min(), 1.25 * max(depths.max(), 2 * depths.min()))
    right.set_ylim(1, HIGHEST)
    for axes, column in ((left, "excess"), (right, "middle_lipschitz")):
        axes.set(xscale="log", yscale="log", xlim=span)
        ends = []
        for exponent, rows in metrics.groupby("exponent"):
            bold = exponent == BOLD
            look = Look(BLUE, width=2.8) if bold else Look(INK, width=1.2)
            look.line(axes, rows["depth"], rows[column], markersize=7 if bold else 4)
            ends.append((min(rows[column].iloc[-1], HIGHEST), f"γ = {exponent:g}", look))
        ticks(axes.xaxis, [x for x in (10, 100, 1000, 10000) if span[0] <= x <= span[1]])
        name_ends(axes, ends)
    ticks(right.yaxis, [1, 100, 1e4, 1e6], ["1", "100", "10⁴", "10⁶"])
    ticks(left.yaxis, [y for y in (0.001, 0.01, 0.1, 1, 10) if y > 0.5 * metrics["excess"].min()])
    panel(left, "a", "norm: ‖θ‖² − 3L → 0", "depth L")
    panel(right, "b", "Lipschitz constant of hidden layers → ∞", "depth L")
    return picture, tables["metrics"]


HEADLINE = ["parameter_norm", "excess", "middle_lipschitz", "lipschitz"]

FIGURES = [
    Drawing(
        "bottleneck-example20",
        draw_example20,
        whose="explicit networks",
        findings=[Finding(say_diverge, holds=["norm-converges", "representations-diverge"])],
        caption="The explicit networks of Example 20 for several choices of ε = L^(-γ). (a)"
        " Squared norm of the parameters above its limit, 3 L: about 12 L ε² + 2 exp(-L ε). (b)"
        " Largest Lipschitz constant of the hidden layers; lines may leave the panel. Nothing is"
        " random here, and nothing is trained.",
    ),
]

overview = draw_example20
