"""Claims on paper D's theorems, measured on the trained networks of figure 1.

An inequality that is far from tight is an illustration: satisfied by a factor of a thousand, or by
as much as the larger side itself is, it could hardly have come out otherwise, and its verdict says
that the formulas are consistent, no more. (A trained network is linear on short segments alone,
which leaves little of the bound on a segment.)
"""

from typing import Any

import pandas as pd

from runner.results.claims import Claim
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty

SIDES = "{points.sum} points of {points.count} networks; lower/upper: median {tightness.median:.3g}"
ROOM = (
    "{points.sum} points of {points.count} networks; upper − lower at least {room.min:.3g}, in the"
    " median network {room.median:.3g}, where upper is {upper.median:.3g}"
)


@quantity()
def violations(tables: Tables, theorem: str, where: str = "points > 0") -> pd.DataFrame:
    """points of a network at which the inequality is violated ({theorem})"""
    rows = tables.get("theorems", pd.DataFrame({"theorem": []})).query("theorem == @theorem")
    rows = nonempty(rows, "network with a rank below its width").query(where)
    return rows.assign(value=rows["violations"], room=rows["upper"] - rows["lower"])


def inequality(
    name: str, statement: str, source: str, *, balanced: bool = False, **more: Any
) -> Claim:
    """Return the claim that a theorem of paper D is nowhere violated.

    balanced: judged by the lowest losses, where balance, which the proof assumes, is to be had;
    more: as of a `Claim`.
    """
    found = violations(name, "recipe == 'minimum'") if balanced else violations(name)
    found = found.given("imbalance <= 1e-3") if balanced else found
    rule = found.always("<=", 0)
    return Claim(name, statement, f"paper D, {source}", rule, **{"note": SIDES} | more)


THEOREMS = [
    inequality(
        "schatten", "L ‖J f(x)‖^(2/L) ≤ ‖θ‖², in the Schatten norm of order 2/L", "Appendix A.1"
    ),
    inequality(
        "theorem-3",
        "2 log |J f(x)|₊ ≤ ‖θ‖² − k L",
        "Theorem 3",
        kind="illustration",
        note=ROOM,
    ),
    inequality(
        "theorem-6",
        "the layers are nearly k-dimensional: Σₗ ‖Wₗ − Uₗ Vₗᵀ‖² ≤ c₁ − 2 log |J f(x)|₊",
        "Theorem 6 (15)",
    ),
    inequality(
        "theorem-7",
        "for balanced parameters the NTK bounds the activations:"
        " Σₗ ‖αₗ₋₁(x)‖² ≤ c max(1, e^(c₁/k)) L / (k |J f(x)|₊^(2/k))",
        "Theorem 7 (16)",
        balanced=True,
        kind="illustration",
    ),
    inequality(
        "corollary-8",
        "for balanced parameters the singular value k + 1 of Wₗ αₗ₋₁(X) / √N stays below its bound"
        " in (1 − p) L layers, for every p",
        "Corollary 8 (17)",
        balanced=True,
        kind="illustration",
    ),
    inequality(
        "proposition-9",
        "‖∂x ∂y Θ(x, x)‖ ≥ L ‖J f(x)‖^(2 − 2/L), with the factor of the proof",
        "Proposition 9 (18), end of proof of (1)",
    ),
    inequality(
        "proposition-9-printed",
        "‖∂x ∂y Θ(x, x)‖ ≥ 2 L ‖J f(x)‖^(2 − 2/L), with the factor as printed",
        "Proposition 9",
    ),
    inequality(
        "proposition-9-segment",
        "where no neuron switches from x to y, one of the ends has ‖Θ‖ ≥ (L/4) ‖x − y‖²"
        " ‖J f(x) u‖^(2 − 2/L), u the direction from x to y",
        "Proposition 9 (18), second part",
        kind="illustration",
    ),
]
"""For a figure whose study has the table `theorems`."""
