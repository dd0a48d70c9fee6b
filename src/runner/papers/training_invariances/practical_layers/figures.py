"""Draw the figure of study `practical_layers`."""

import pandas as pd
from matplotlib.figure import Figure

from runner.papers.training_invariances.looks import INVARIANT, NOT_INVARIANT
from runner.papers.training_invariances.orders import MOST_CHANGING, SAME_ORDER
from runner.papers.training_invariances.practical_layers.tables import (
    CONTROLS,
    DECAY,
    METHODS,
    MIDDLE,
    SHOWN,
    orders,
    shown,
)
from runner.results.drawing import Drawing, Finding
from runner.results.rows import Tables, spread
from runner.results.style import GREEN, GREY, INK, PURPLE, QUIET, SHADE, SMALL, Look, sheet, ticks

OPTIMIZERS = {
    METHODS["sgd"]: Look(INK, "s"),
    DECAY: Look(GREY, "s", hollow=True),
    METHODS["momentum"]: Look(PURPLE, "^"),
    METHODS["adam"]: Look(GREEN, "D"),
}
"""Looks of the optimizers, from the highest mark of a row to the lowest."""

NOT_ASYMPTOTIC = -0.7
"""Where on the axis of orders an optimizer has its mark if its order still changes."""


def say_practice(tables: Tables) -> str:
    """Return the headline of figure `invariants-in-practice`: how much gradient flow conserves.

    It has the number of conserved quantities. Controls, which gradient flow moves, are not counted.
    Raises NoRows if no quantity was measured.
    """
    kept = shown(tables).query("not control")["label"].nunique()
    return (
        f"Gradient flow conserves {kept} quantities of layers that people use; SGD and momentum"
        " move them only because steps are finite"
    )


def draw_practice(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `invariants-in-practice`: a row for each quantity of small networks.

    The left panel has on its x-axis the exact rate of change under gradient flow, relative to the
    largest possible rate. The right panel has the exponent of the drift in the learning rate, with
    a mark for each optimizer. Exponents that still change with the learning rate are not drawn.
    Returns the picture, and a table with median and range of the exponents that are drawn.
    """
    rates, fitted = shown(tables), orders(tables)
    fitted["value"] = fitted["value"].where(fitted["asymptotic"])
    used = {method: look for method, look in OPTIMIZERS.items() if method in set(fitted["method"])}
    options = {"height": 5.6, "left": 2.6, "top": 0.7, "ratios": [1, 1.4], "sharey": True}
    picture, ((left, right),) = sheet(1, 2, **options, beside=True)
    left.set(xscale="log", xlim=(1e-17, 3), ylim=(len(SHOWN) - 0.4, -0.6), yticks=[])
    right.set_xlim(-0.95, 1.75)
    at = {0.0: "0: moved", 1.0: "1: conserved"}
    corners = [MIDDLE, 1.75, 1.75, MIDDLE], [-0.6, -0.6, len(SHOWN), len(SHOWN)]
    right.fill(*corners, color=SHADE, linewidth=0, zorder=0)
    words = f"above {MIDDLE}:\ncounted as\nconserved"
    QUIET.name(right, 1.03, len(SHOWN) - 2, words, size=SMALL, ha="left")
    for x in (0, 1):
        right.vlines(x, -0.6, len(SHOWN), QUIET.color, QUIET.dashes, linewidth=1.2, zorder=1)
    for row, label in enumerate(SHOWN):
        look = NOT_INVARIANT if label in CONTROLS else INVARIANT
        place = {"transform": left.get_yaxis_transform(), "ha": "right"}
        look.name(left, -0.03, row, label, **place)
        values = rates.loc[rates["label"] == label, "rate"].unique()
        look.line(left, values, [row] * len(values), linestyle="", markersize=6)
        of_label = fitted[fitted["label"] == label]
        for lane, (method, of_method) in enumerate(OPTIMIZERS.items()):
            points = of_label[of_label["method"] == method]
            y = row + 0.18 * (lane - 1.5)
            if points["asymptotic"].mean() < 1 - MOST_CHANGING:
                of_method.line(right, NOT_ASYMPTOTIC, y, markersize=6)
                at[NOT_ASYMPTOTIC] = "unsettled"
                continue
            points = points["value"].dropna()
            right.hlines(y, points.min(), points.max(), of_method.color, linewidth=1.2)
            of_method.line(right, points.median(), y, markersize=6)
    for lane, (method, of_method) in enumerate(used.items() if len(used) > 1 else ()):
        x, y = (-0.6, 0.4)[lane % 2], (1.1, 1.045)[lane // 2]
        above: dict = {"transform": right.get_xaxis_transform()}
        of_method.line(right, x, y, markersize=6, clip_on=False, **above)
        of_method.name(right, x + 0.07, y, method, ha="left", **above)
    powers = {1e-16: "10⁻¹⁶", 1e-12: "10⁻¹²", 1e-8: "10⁻⁸", 1e-4: "10⁻⁴", 1: "1"}
    ticks(left.xaxis, powers, [*powers.values()])
    ticks(right.xaxis, sorted(at), [at[x] for x in sorted(at)])
    left.set_xlabel("rate of change / largest possible")
    QUIET.note(left, -1.13, -0.055, "D = W₂ᵀW₂ − W₁W₁ᵀ\nof two layers", va="top")
    right.set_xlabel("convergence order of the drift")
    return picture, spread(fitted, ["label", "method"], ["value"])


overview = draw_practice

HEADLINE = ["drift", "loss"]

FIGURES = [
    Drawing(
        "invariants-in-practice",
        draw_practice,
        whose="our experiment",
        marks="left: networks; right: medians, bars: range",
        findings=[Finding(say_practice, holds=["practice-conserved", "practice-first-order"])],
        caption="The left panel shows the exact rate of change under gradient flow, divided by the"
        " largest possible rate. The right panel shows the exponent of the drift in the learning"
        " rate, from the two smallest learning rates; above"
        f" {MIDDLE} we count the quantity as conserved. If the exponent differs from that of the"
        f" next two learning rates by {SAME_ORDER} or more, the mark is at the left end,"
        " *unsettled*. Blue quantities are conserved, orange ones are controls. D compares the"
        " outgoing and incoming weights of neurons. With weight decay λ, we compare D exp(2λT)"
        " (T: time).",
    ),
]
