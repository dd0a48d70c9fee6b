"""Claims on paper D's theorems, measured on the trained networks of figures 1 and 2."""

import pandas as pd

from runner.results.claims import Found, Tables, claim
from runner.results.evidence import everywhere

STATEMENTS = {
    "schatten": ("L ||J f(x)||_{2/L}^{2/L} <= ||theta||^2", "paper D, Appendix A.1"),
    "theorem-3": ("2 log |J f(x)|_+ <= ||theta||^2 - k L", "paper D, Theorem 3"),
    "theorem-6": (
        "sum_l ||W_l - U_l V_l^T||^2 <= c_1 - 2 log |J f(x)|_+: W_l is nearly k-dimensional",
        "paper D, Theorem 6 (15)",
    ),
    "theorem-7": (
        "the NTK bounds the activations: sum_l ||alpha_{l-1}(x)||^2 <= c max(1, e^{c_1/k}) L"
        " / (k |J f(x)|_+^{2/k})",
        "paper D, Theorem 7 (16)",
    ),
    "corollary-8": (
        "s_{k+1}(W_l alpha_{l-1}(X) / sqrt N) stays below its bound in (1-p) L layers, for every p",
        "paper D, Corollary 8 (17)",
    ),
    "proposition-9": (
        "||d^2_xy Theta(x, x)||_op >= L ||J f(x)||_op^{2-2/L} (the factor of the proof)",
        "paper D, Proposition 9 (18), end of proof of (1)",
    ),
    "proposition-9-printed": (
        "||d^2_xy Theta(x, x)||_op >= 2 L ||J f(x)||_op^{2-2/L} (the factor as printed)",
        "paper D, Proposition 9",
    ),
}


def inequality(tables: Tables, theorem: str) -> Found:
    """Whether the inequality is satisfied at every measured point of every trained network."""
    rows = tables.get("theorems", pd.DataFrame({"theorem": []})).query("theorem == @theorem")
    if rows.empty:
        return Found([], "no network with a rank below its width")
    words = (
        f"{rows['violations'].sum()} violations at {rows['points'].sum()} points of {len(rows)}"
        f" networks; lower/upper: median {rows['tightness'].median():.3g}"
    )
    return Found([everywhere((rows["violations"] == 0).groupby(rows["replicate"]).all())], words)


def claim_theorems(figure: str) -> None:
    """Every theorem, for a figure whose study has the table `theorems`."""
    for name, (statement, source) in STATEMENTS.items():
        claim(figure=figure, name=name, statement=statement, source=source, theorem=name)(
            inequality
        )
