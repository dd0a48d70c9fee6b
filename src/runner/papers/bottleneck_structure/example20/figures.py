"""Draw the figure of study `example20`, which is also its preview."""

from contextlib import suppress

import pandas as pd
from matplotlib.figure import Figure

from runner.results.curves import curves
from runner.results.drawing import Drawing, Finding
from runner.results.looks import Name
from runner.results.rows import NoRows, Tables, select
from runner.results.style import BLUE, INK, QUIET, SMALL, Look, name_ends, panel, sheet, ticks

BOLD = 0.8
"""Exponent of the bold line, which shows both limits."""

HIGHEST = 3e7
"""Upper end of panel (b), low enough that lines with a small slope can be told apart."""

POWERS = {1e4: "10⁴", 1e6: "10⁶"}


def say_diverge(tables: Tables) -> str:
    """Return the headline: the middle's Lipschitz constants at the smallest and the largest depth.

    The exponent γ is 0.8. Raises NoRows if this exponent was not run.
    """
    rows = select(tables["metrics"], exponent=BOLD).sort_values("depth")
    first, last = rows["middle_lipschitz"].iloc[[0, -1]]
    return (
        "‖θ‖² − 3L converges with the depth L while the representations diverge (Lipschitz"
        f" constant from {first:.1f} to {last:.0f} for γ = {BOLD:g})"
    )


def caption_example20(tables: Tables) -> str:
    """Return the caption; it speaks of the bold line only if this line is drawn."""
    bold = f"; γ = {BOLD:g} is bold" if BOLD in {*tables["metrics"]["exponent"]} else ""
    return (
        f"The explicit networks of Example 20 are drawn for several ε = L^(-γ){bold}. (a) shows the"
        " squared norm ‖θ‖² of the parameters θ minus 3 L, against the depth L. (b) shows the"
        " largest Lipschitz constant of the hidden layers, against L; a line may leave the panel."
        " Nothing is random, and nothing is trained."
    )


def draw_example20(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw by depth the squared norm minus 3 L, and the Lipschitz constant of the hidden layers.

    Each exponent γ has a line. Returns the picture and the table `metrics`.
    """
    metrics = tables["metrics"].sort_values("depth")
    picture, ((left, right),) = sheet(1, 2, height=4.0, gap=1.5, right=0.85)
    depths = metrics["depth"]
    span = (0.8 * depths.min(), 1.25 * max(depths.max(), 2 * depths.min()))
    highest = min(HIGHEST, 3 * metrics["middle_lipschitz"].max())
    right.set_ylim(1, highest)

    def named(exponent: float) -> Name:
        look = Look(BLUE, width=2.8) if exponent == BOLD else Look(INK, width=1.2, size=4)
        return Name(f"γ = {exponent:g}", look)

    for axes, column in ((left, "excess"), (right, "middle_lipschitz")):
        axes.set(xscale="log", yscale="log", xlim=span)
        ends = curves(axes, metrics, "depth", column, "exponent", named)
        for number, (end, text, look) in enumerate(ends):
            if axes is right and end > highest:
                ends[number] = highest, f"{text}:\n↑ leaves\nthe panel", look
            elif axes is right and look.hue == BLUE:
                ends[number] = end, f"{text}:\n{end:.0f}", look
        ticks(axes.xaxis, [x for x in (10, 100, 1000, 10000) if span[0] <= x <= span[1]])
        name_ends(axes, ends)
    with suppress(NoRows):
        first = select(metrics, exponent=BOLD).iloc[0]
        spot: dict = {"textcoords": "offset points", "xytext": (-8, 0), "size": SMALL}
        text = f"{first['middle_lipschitz']:.1f}"
        right.set_xlim(left=depths.min() / 4)  # room for the number
        Look(BLUE).name(right, first["depth"], first["middle_lipschitz"], text, ha="right", **spot)
    words = "γ: the small parameter $\\varepsilon$\nof Example 20 is $L^{-\\gamma}$"
    QUIET.note(left, 0.04, 0.1, words)
    powers = [1, 10, 100, 1e3] if highest < 1e4 else [1, 100, 1e4, 1e6]
    powers = [power for power in powers if power <= highest]
    ticks(right.yaxis, powers, [POWERS.get(power, f"{power:,g}") for power in powers])
    ticks(left.yaxis, [y for y in (0.001, 0.01, 0.1, 1, 10) if y > 0.5 * metrics["excess"].min()])
    panel(left, "a", "squared norm ‖θ‖² − 3L", "depth L")
    panel(right, "b", "Lipschitz constant of hidden layers", "depth L")
    return picture, tables["metrics"]


HEADLINE = ["parameter_norm", "excess", "middle_lipschitz", "lipschitz"]

FIGURES = [
    Drawing(
        "bottleneck-example20",
        draw_example20,
        whose="explicit networks",
        findings=[Finding(say_diverge, holds=["norm-converges", "representations-diverge"])],
        caption=caption_example20,
    ),
]

overview = draw_example20
