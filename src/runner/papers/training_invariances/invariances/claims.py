"""Claims of paper C about training: theorems, which are either true for every network or false.

A replicate satisfies a claim if all its networks satisfy the claim. One counterexample refutes a
claim.
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
"""Largest error of a convergence order extrapolated to learning rate zero."""

ROUNDING = 1e-9
"""Largest rounding error of sums over paths, relative to the output."""

MARGIN = 0.01
"""Margin of an exponent that a conservation law makes exact."""

GROWTH = 0.1
"""Margin of (exponent of log t) / (1/L). At six layers 1/5 and 1/7 differ from 1/6 by ≥ 14 %."""

ORDERS = (
    "without its error, p is {value.mean:.3f} in the mean ({value.min:.3f} to {value.max:.3f};"
    " {value.count:,} quantities)"
)

RELU, LINEAR = "not linear", "linear"
FULL_RELU = f"pair == 'full' and {RELU} and not promised"
PAIRS = f"(pair in ('active', 'mixed') and {RELU} or pair == 'full' and {LINEAR} and item == 0)"


def conserved(name: str, statement: str, source: str, where: str) -> Claim:
    """Return the claim that gradient flow conserves the quantities that meet the condition `where`.

    Its rule: as the learning rate goes to zero, the convergence order of the largest drift is above
    1 - ORDER_ERROR. Only quantities that the paper states to be constant are judged.

    - name, statement, source: name of the claim, its sentence, and its place in the paper.
    - where: a condition on columns of the table `metrics`, such as "pair == 'layer'".
    """
    rule = order(f"{where} and promised").always(">", 1 - ORDER_ERROR)
    return Claim(name, statement, source, rule, note=ORDERS)


VERTEX_WISE = conserved(
    "vertex-wise",
    "along gradient flow, a neuron's squared norm of outgoing weights minus its squared norm of"
    " incoming weights is constant",
    "paper C, Lemma 2, Eq. (4)",
    "pair == 'diagonal'",
)
LAYER_WISE = conserved(
    "layer-wise",
    "along gradient flow, the difference of the squared norms of any two layers, or of two cuts of"
    " a graph, is constant",
    "paper C, Lemma 3",
    "pair == 'layer'",
)

CONSERVED = [
    conserved(
        "linear-layers",
        "along gradient flow, the matrix D = W₂ᵀW₂ − W₁W₁ᵀ of adjacent linear layers with"
        " weights W₁ and W₂ is constant",
        "paper C, Theorem 1, item 1",
        f"pair == 'full' and {LINEAR}",
    ),
    VERTEX_WISE,
    LAYER_WISE,
    Claim(
        "relu-limit",
        "gradient flow changes D = W₂ᵀW₂ − W₁W₁ᵀ of adjacent ReLU layers W₁ and W₂: the drift stays"
        " above zero as the learning rate goes to zero",
        "paper C, Lemma 4",
        limit_over_error(FULL_RELU).above(1),
        note=(
            "gradient flow changes D by {moved.min:.2g} to {moved.max:.2g} times the initial"
            " norm of D"
        ),
    ),
    Claim(
        "decomposition",
        "a network equals a tree network with weights +1 and −1, whose inputs are, for each path"
        " through the network, the product of the input and the weights along the path",
        "paper C, Lemma 1",
        distance_of_tree().always("<=", ROUNDING),
        note="the networks have {paths.min:,} to {paths.max:,} paths",
    ),
]

FIRST_ORDER = [
    Claim(
        "theorem-1",
        "along gradient flow, D = W₂ᵀW₂ − W₁W₁ᵀ of adjacent layers W₁, W₂ is constant in each of"
        " the seven cases of Theorem 1",
        "paper C, Theorem 1",
        order_of_items().always(">", 1 - ORDER_ERROR),
        note=ORDERS,
    ),
    VERTEX_WISE,
    conserved(
        "edge-wise",
        "along gradient flow, two neurons with equal neighbors and activation patterns conserve"
        " the difference of the inner products of their outgoing and incoming weights",
        "paper C, Lemma 2, Eq. (5)",
        PAIRS,
    ),
    LAYER_WISE,
    Claim(
        "relu-not-invariant",
        "gradient flow usually changes D = W₂ᵀW₂ − W₁W₁ᵀ of adjacent ReLU layers W₁ and W₂: the"
        " drift does not vanish with the learning rate",
        "paper C, Lemma 4 and its proof",
        typical_order(FULL_RELU).below(ORDER_ERROR),
    ),
]

WHAT_GROWS = [
    Claim(
        "weights-diverge",
        "on separable data, the norms of all L layers diverge like (log t)^(1/L) with time t in"
        " networks without skip connections",
        "paper C, Corollary 1, whose proof cites Lyu and Li (2020)",
        exponent_in_log_time().given("separates").within(GROWTH, of=1),
        note="the exponents p are {exponent.min:.3f} to {exponent.max:.3f}",
    ),
    Claim(
        "rank-one",
        "on separable data, the last fully connected layers W tend to rank one as their norms"
        " diverge: 1 − ‖W‖₂²/‖W‖² falls like 1/‖W‖²",
        "paper C, Theorem 2, Eq. (15); Corollary 1",
        exponent_in_norm("1 - operator_ratio").given("separates").within(MARGIN, of=-1),
    ),
    Claim(
        "alignment",
        "the leading singular vectors u and v of adjacent layers W align in the last fully"
        " connected layers: 1 − |⟨v, u⟩| falls like 1/‖W‖² or faster",
        "paper C, Theorem 2, Eq. (15); Corollary 1",
        exponent_in_norm("1 - alignment").given("separates").below(-1),
        note="u is the leading left singular vector of a layer, and v the leading right one of the"
        " next layer",
    ),
    Claim(
        "reduced-alignment",
        "in convolutions and residual blocks W with trained skips, ‖W‖₂²/‖W‖² ends above the"
        " bound of Eq. (14), where this bound is not trivial",
        "paper C, Theorem 2, Eq. (14)",
        limit_above().given("separates").always(">=", 0),
        note="the ratio is {start.min:.3f} to {start.max:.3f} before training and"
        " {operator_ratio.min:.3f} to {operator_ratio.max:.3f} after it; the bounds are"
        " {bound.min:.3f} to {bound.max:.3f}",
    ),
    Claim(
        "finite-time",
        "at every time, the ratio ‖W‖₂²/‖W‖² of a layer W is above the bound of Eq. (13), with our"
        " constant, where this bound is not trivial",
        "paper C, Theorem 2, Eq. (13)",
        ratio_above().always(">=", -ROUNDING),
        note="our constant has the factor 8 of Lemma 11 for each residual block",
    ),
]

CLAIMS = {"conserved": CONSERVED, "first-order": FIRST_ORDER, "what-grows": WHAT_GROWS}
