"""What paper C states about training: theorems on every network.

In each replicate, in all its networks together, either every one satisfies the statement or there
is a counterexample.
"""

from runner.papers.training_invariances.invariances.quantities import (
    distance_of_tree,
    exponent_in_log_time,
    exponent_in_norm,
    limit_above,
    limit_over_error,
    order,
    order_of_items,
    ratio_above,
    typical_order,
)
from runner.results.claims import Claim

ORDER_ERROR = 0.1
"""What an order extrapolated to rate zero may be off by."""

ROUNDING = 1e-9
"""Of sums over paths, relative to the output."""

MARGIN = 0.01
"""Of an exponent that a conservation law makes exact: what the rest of the flow may add to it."""

GROWTH = 0.1
"""Of the exponent of log t over 1/L: at six layers that of five or seven is 0.14 or more away."""

ORDERS = "order {value.mean:.3f} ({value.min:.3f} to {value.max:.3f}) in {value.count} series"

RELU, LINEAR = "not linear", "linear"
FULL_RELU = f"pair == 'full' and {RELU} and not promised"
PAIRS = f"(pair in ('active', 'mixed') and {RELU} or pair == 'full' and {LINEAR} and item == 0)"


def conserved(name: str, statement: str, source: str, where: str) -> Claim:
    """That what is chosen drifts with the rate alone."""
    rule = order(f"{where} and promised").always(">", 1 - ORDER_ERROR)
    return Claim(name, statement, source, rule, note=ORDERS)


VERTEX_WISE = conserved(
    "vertex-wise",
    "the squared norms of a neuron's incoming and outgoing weights keep their difference",
    "paper C, Lemma 2, Eq. (4)",
    "pair == 'diagonal'",
)
LAYER_WISE = conserved(
    "layer-wise",
    "the squared Frobenius norms of any two layers keep their difference",
    "paper C, Lemma 3",
    "pair == 'layer'",
)

CONSERVED = [
    conserved(
        "linear-layers",
        "the full matrix D of linear layers is invariant",
        "paper C, Theorem 1, item 1",
        f"pair == 'full' and {LINEAR}",
    ),
    VERTEX_WISE,
    LAYER_WISE,
    Claim(
        "relu-limit",
        "gradient flow itself, at rate zero, changes the full matrix D of ReLU layers",
        "paper C, Lemma 4",
        limit_over_error(FULL_RELU).above(1),
        note="the flow moves D by {moved.min:.2g} to {moved.max:.2g} of its initial norm",
    ),
    Claim(
        "decomposition",
        "a network is a tree network of signs applied to the products of weights along paths",
        "paper C, Lemma 1",
        distance_of_tree().always("<=", ROUNDING),
        note="{paths.min} to {paths.max} paths, farthest apart by {value.max:.1g}",
    ),
]

FIRST_ORDER = [
    Claim(
        "theorem-1",
        "in each of the seven items of Theorem 1 the difference D of the Gram matrices of adjacent"
        " layers is invariant",
        "paper C, Theorem 1",
        order_of_items().always(">", 1 - ORDER_ERROR),
        note=ORDERS,
    ),
    VERTEX_WISE,
    conserved(
        "edge-wise",
        "for two neurons with the same neighbours that are on for the same examples, the inner"
        " products of their incoming and of their outgoing weights keep their difference",
        "paper C, Lemma 2, Eq. (5)",
        PAIRS,
    ),
    LAYER_WISE,
    Claim(
        "relu-not-invariant",
        "in general the full matrix D of ReLU layers is not invariant: its drift does not vanish"
        " with the learning rate",
        "paper C, Lemma 4 and its proof",
        typical_order(FULL_RELU).below(ORDER_ERROR),
    ),
]

WHAT_GROWS = [
    Claim(
        "weights-diverge",
        "on separable data the norms of all layers of a network with L layers and no skip"
        " connections diverge, like (log t)^(1/L)",
        "paper C, Corollary 1, whose proof cites Lyu and Li (2020)",
        exponent_in_log_time().given("separates").within(GROWTH, of=1),
        note="exponents {exponent.min:.3f} to {exponent.max:.3f}",
    ),
    Claim(
        "rank-one",
        "as their norms diverge the last fully connected layers tend to rank one:"
        " 1 − ‖W‖₂² / ‖W‖² falls as 1 / ‖W‖², since ‖W‖² − ‖W‖₂² stays",
        "paper C, Theorem 2, Eq. (15); Corollary 1",
        exponent_in_norm("1 - operator_ratio").given("separates").within(MARGIN, of=-1),
    ),
    Claim(
        "alignment",
        "adjacent singular vectors of the last fully connected layers align: 1 − |⟨v, u⟩| falls at"
        " least as 1 / ‖W‖²",
        "paper C, Theorem 2, Eq. (15); Corollary 1",
        exponent_in_norm("1 - alignment").given("separates").below(-1),
    ),
    Claim(
        "reduced-alignment",
        "‖W‖₂² / ‖W‖² of residual and convolutional layers ends above 1 / (8ᴺ M), judged where that"
        " is more than one over the number of singular values and more than the ratio at the start",
        "paper C, Theorem 2, Eq. (14)",
        limit_above().given("separates").always(">=", 0),
        note="from {start.min:.3f} to {start.max:.3f} at the start to {operator_ratio.min:.3f} to"
        " {operator_ratio.max:.3f}, bounds {bound.min:.3f} to {bound.max:.3f}",
    ),
    Claim(
        "finite-time",
        "at every time ‖W‖₂² / ‖W‖² is above Eq. (13) with its printed factor 8 and its constant"
        " computed from the start, judged where that is above the trivial bound",
        "paper C, Theorem 2, Eq. (13)",
        ratio_above().always(">=", -ROUNDING),
        note="smallest excess {value.min:.2g}",
    ),
]

CLAIMS = {"conserved": CONSERVED, "first-order": FIRST_ORDER, "what-grows": WHAT_GROWS}
