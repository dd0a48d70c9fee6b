"""Additional claims: what gradient flow conserves in the layers that people use.

The convergence order is the exponent of a quantity's drift in the learning rate. An order of 1
means that gradient flow conserves the quantity, an order of 0 that the flow moves it. The bound in
the claims, 0.5, is the middle of both. Only asymptotic orders are judged: those that no longer
change with the learning rate.
"""

from runner.papers.training_invariances.practical_layers.quantities import exact_rate, order
from runner.papers.training_invariances.practical_layers.tables import MIDDLE
from runner.results.claims import ours

SOURCE = "from paper C, Lemma 2 and Theorem 1"
ROUNDING, MOVED = 1e-9, 1e-3

LIMIT = "asymptotic"
"""The condition that the order no longer changes with the learning rate, see `orders`."""

CLAIMS = {
    "invariants-in-practice": [
        ours(
            "practice-conserved",
            "gradient flow conserves a quantity of networks with pooling, batch norm, layer norm,"
            " attention, gated units or residual blocks, and it changes the controls",
            SOURCE,
            [
                exact_rate("not control").always("<=", ROUNDING),
                exact_rate("control").always(">=", MOVED),
            ],
        ),
        ours(
            "practice-first-order",
            "with SGD, momentum or weight decay, quantities that gradient flow conserves drift in"
            " proportion to the learning rate, but the drift of the controls does not depend on the"
            " learning rate",
            SOURCE,
            [
                order("not control and method != 'Adam'").given(LIMIT).always(">", MIDDLE),
                order("control and method != 'Adam'").given(LIMIT).always("<", MIDDLE),
            ],
        ),
        ours(
            "practice-adam",
            "with Adam, quantities that gradient flow conserves drift by an amount that does not"
            " vanish with the learning rate",
            "supplementary to paper C, Section 4",
            order("not control and method == 'Adam'").given(LIMIT).always("<", MIDDLE),
        ),
    ],
}
