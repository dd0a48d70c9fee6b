"""Claims that no trained network violates a theorem of paper D.

A loose bound is an illustration. If it holds by a factor of a thousand, the verdict says only that
the formulas are consistent. The bound on a segment is small because a trained network is linear on
short segments only.
"""

from typing import Any

import pandas as pd

from runner.results.claims import Claim
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty

SIDES = (
    "tested at {points.sum:,} points of {points.count} networks; the side that should be smaller is"
    " {tightness.median:.3g} times the other (median)"
)
ROOM = (
    "tested at {points.sum:,} points of {points.count} networks; the difference of the sides is at"
    " least {room.min:.3g} (median {room.median:.3g}), and the larger side is {upper.median:.3g}"
    " (median)"
)


@quantity("number of points at which a network violates {theorem}")
def violations(tables: Tables, theorem: str, where: str = "points > 0") -> pd.DataFrame:
    """Return the number of points at which a network violates a theorem, a row for each network.

    The column `room` is the larger side minus the smaller side at the tightest point. theorem: a
    value of the column `theorem` of the table `theorems`, such as "theorem-3". where: a condition
    on the columns of this table, as for `DataFrame.query`. Raises NoRows if the theorem was checked
    for no network.
    """
    rows = tables.get("theorems", pd.DataFrame({"theorem": []})).query("theorem == @theorem")
    rows = nonempty(rows, "network with a rank below its width").query(where)
    return rows.assign(value=rows["violations"], room=rows["upper"] - rows["lower"])


def inequality(
    name: str, statement: str, source: str, *, balanced: bool = False, **more: Any
) -> Claim:
    """Return the claim that no network violates a theorem of paper D.

    name: the theorem in the table `theorems`. source: its place in the paper. balanced: whether the
    proof assumes balanced parameters; the claim is then about best solutions only. more: further
    arguments of `Claim`.
    """
    count = violations(name, "recipe == 'minimum'") if balanced else violations(name)
    count = count.given("imbalance <= 1e-3") if balanced else count
    rule = count.always("<=", 0)
    return Claim(name, statement, f"paper D, {source}", rule, **{"note": SIDES} | more)


THEOREMS = [
    inequality(
        "schatten",
        "every ReLU network f of depth L has L ‖J f(x)‖^(2/L) ≤ ‖θ‖² (J f: Jacobian, Schatten"
        " norm of order 2/L; θ: parameters)",
        "Appendix A.1",
    ),
    inequality(
        "theorem-3",
        "ReLU networks of depth L have ‖θ‖² ≥ k L + 2 log |J|₊ (θ: parameters; |J|₊: product of"
        " the Jacobian's k nonzero singular values)",
        "Theorem 3",
        kind="illustration",
        note=ROOM,
    ),
    inequality(
        "theorem-6",
        "if the Jacobian has rank k, each weight matrix is close to a matrix U Vᵀ, where U and V"
        " have k orthonormal columns: the distance is below the bound of Theorem 6",
        "Theorem 6 (15)",
        note=f"{SIDES}; we test the form of Theorem 15, where Uₗ and Vₗ may differ; the inequality"
        " is Σₗ ‖Wₗ − Uₗ Vₗᵀ‖² ≤ ‖θ‖² − k L − 2 log |J f(x)|₊",
    ),
    inequality(
        "theorem-7",
        "in balanced networks, the sum of the layers' squared activations is below the bound of"
        " Theorem 7, a multiple of the tangent kernel's trace",
        "Theorem 7 (16)",
        balanced=True,
        kind="illustration",
        note=f"{SIDES}; the inequality is Σₗ ‖αₗ₋₁(x)‖² ≤ c max(1, e^(c₁/k)) L"
        " / (k |J f(x)|₊^(2/k)) (αₗ: activations of layer l; J: Jacobian; k: its rank; c L: trace"
        " of the tangent kernel; c₁ = ‖θ‖² − k L)",
    ),
    inequality(
        "corollary-8",
        "in most layers of balanced networks of Jacobian rank k, singular value k + 1 of the"
        " pre-activations is below Corollary 8's bound",
        "Corollary 8 (17)",
        balanced=True,
        kind="illustration",
        note=f"{SIDES}; the bound is for (1 − p) L of L layers, for every p, and for"
        " pre-activations of N points divided by √N",
    ),
    inequality(
        "proposition-9",
        "a network of depth L has ‖∂x ∂y Θ(x, x)‖ ≥ L ‖J‖^(2−2/L) (Θ: tangent kernel; J: Jacobian"
        " at x), with the proof's factor",
        "Proposition 9 (18), end of proof of (1)",
    ),
    inequality(
        "proposition-9-printed",
        "a network of depth L has ‖∂x ∂y Θ(x, x)‖ ≥ 2 L ‖J‖^(2−2/L) (Θ: tangent kernel; J:"
        " Jacobian at x), with the printed factor",
        "Proposition 9",
    ),
    inequality(
        "proposition-9-segment",
        "if no neuron switches between two points, the tangent kernel at one of the points is"
        " above the bound of Proposition 9",
        "Proposition 9 (18), second part",
        kind="illustration",
        note=f"{SIDES}; the bound is (L/4) ‖x − y‖² ‖J f(x) u‖^(2 − 2/L) (J f: Jacobian; u:"
        " direction from x to y)",
    ),
]
"""Claims of every figure whose study has the table `theorems`."""
