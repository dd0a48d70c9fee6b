"""What claims of study `practical_layers` say of drifts with a known dependence on the rate."""

import numpy as np
import pandas as pd
import pytest
from in_memory import judged, kept_tables


def adam_moves(drift) -> pd.Series:
    """Return the judged claim on Adam where its drifts depend on the rate and the quantity.

    drift: a function of the learning rate, in units of the smallest one, and of the quantity.
    """
    rows = kept_tables("invariants-in-practice")["metrics"]
    adam = rows["optimizer"] == "adam"
    of_adam = rows[adam]
    units = of_adam["learning_rate"] / of_adam["learning_rate"].min()
    rows.loc[adam, "drift"] = drift(units, of_adam["quantity"])
    return judged("invariants-in-practice", {"metrics": rows}).loc["practice-adam"]


@pytest.mark.parametrize(
    ("drift", "verdict"),
    [
        (lambda h, _: 1 + 0 * h, "holds"),
        (lambda h, _: 1 + 0.05 * h, "holds"),
        (lambda h, _: h, "fails"),
        (lambda h, _: h**0.6, "fails"),
    ],
    ids=["moved", "moved, with a term that vanishes", "conserved", "of order above a half"],
)
def test_adam_moves_a_quantity_if_its_drift_does_not_vanish(drift, verdict):
    assert adam_moves(drift)["verdict"] == verdict


def test_where_more_than_a_fifth_of_the_orders_still_change_there_is_no_verdict():
    found = adam_moves(lambda h, quantity: np.where(quantity.str.startswith("rows"), 1 + h, 1))
    assert (
        found["verdict"] == "undecided" and "still changes with the learning rate" in found["note"]
    )
