"""Claims on paper D's theorems, measured on the trained networks of figures 1 and 2.

An inequality that is far from tight is an illustration: satisfied by a factor of a thousand, or by
as much as the larger side itself is, it could hardly have come out otherwise, and its verdict says
that the formulas are consistent, no more. (A trained network is linear on short segments alone,
which leaves little of the bound on a segment.)
"""

from dataclasses import dataclass
from functools import partial

import pandas as pd

from runner.results.claims import Claim, Found, Kind, Tables
from runner.results.evidence import everywhere
from runner.results.rows import nonempty

BALANCED = 1e-3
"""Relative imbalance up to which a network counts as balanced."""


@dataclass(frozen=True)
class Theorem:
    """An inequality of the table `theorems`."""

    statement: str
    source: str
    kind: Kind = "paper"
    balanced: bool = False
    """Whether its proof assumes balanced parameters."""
    additive: bool = False
    """Whether the difference of the sides is its margin, and not their ratio: logarithms."""


THEOREMS = {
    "schatten": Theorem("L ||J f(x)||_{2/L}^{2/L} <= ||theta||^2", "paper D, Appendix A.1"),
    "theorem-3": Theorem(
        "2 log |J f(x)|_+ <= ||theta||^2 - k L",
        "paper D, Theorem 3",
        kind="illustration",
        additive=True,
    ),
    "theorem-6": Theorem(
        "sum_l ||W_l - U_l V_l^T||^2 <= c_1 - 2 log |J f(x)|_+: W_l is nearly k-dimensional",
        "paper D, Theorem 6 (15)",
    ),
    "theorem-7": Theorem(
        "the NTK bounds the activations: sum_l ||alpha_{l-1}(x)||^2 <= c max(1, e^{c_1/k}) L"
        " / (k |J f(x)|_+^{2/k})",
        "paper D, Theorem 7 (16)",
        kind="illustration",
        balanced=True,
    ),
    "corollary-8": Theorem(
        "s_{k+1}(W_l alpha_{l-1}(X) / sqrt N) stays below its bound in (1-p) L layers, for every p",
        "paper D, Corollary 8 (17)",
        kind="illustration",
        balanced=True,
    ),
    "proposition-9": Theorem(
        "||d^2_xy Theta(x, x)||_op >= L ||J f(x)||_op^{2-2/L} (the factor of the proof)",
        "paper D, Proposition 9 (18), end of proof of (1)",
    ),
    "proposition-9-printed": Theorem(
        "||d^2_xy Theta(x, x)||_op >= 2 L ||J f(x)||_op^{2-2/L} (the factor as printed)",
        "paper D, Proposition 9",
    ),
    "proposition-9-segment": Theorem(
        "where no neuron switches from x to y, one of the ends has ||Theta||_op >="
        " (L/4) ||x - y||^2 ||J f(x) u||^{2-2/L}, u the direction from x to y",
        "paper D, Proposition 9 (18), second part",
        kind="illustration",
    ),
}


def inequality(tables: Tables, theorem: str, balanced: bool, additive: bool = False) -> Found:
    """Whether the inequality is satisfied at every measured point of every trained network."""
    rows = tables.get("theorems", pd.DataFrame({"theorem": []})).query("theorem == @theorem")
    rows = nonempty(rows, "network with a rank below its width")
    words = ""
    if balanced:
        measured = len(rows)
        rows = nonempty(
            rows[rows["imbalance"] <= BALANCED],
            f"network of {measured} that is balanced up to {BALANCED:g}",
        )
        words = f", all that are balanced of {measured}"
    margin = f"lower/upper: median {rows['tightness'].median():.3g}"
    if additive:
        least = rows["upper"] - rows["lower"]  # of each network, at the point where it is least
        margin = f"upper - lower at least {least.min():.3g}, in the median network"
        margin += f" {least.median():.3g}, where upper is {rows['upper'].median():.3g}"
    words = (
        f"{rows['violations'].sum()} violations at {rows['points'].sum()} points of {len(rows)}"
        f" networks{words}; {margin}"
    )
    return Found([everywhere((rows["violations"] == 0).groupby(rows["replicate"]).all())], words)


def theorem_claims() -> list[Claim]:
    """Return a claim for every theorem, for figures whose study has the table `theorems`."""
    return [
        Claim(
            name,
            each.statement,
            each.source,
            partial(inequality, theorem=name, balanced=each.balanced, additive=each.additive),
            f"imbalance up to {BALANCED:g}: lower <= upper" if each.balanced else "",
            kind=each.kind,
        )
        for name, each in THEOREMS.items()
    ]
