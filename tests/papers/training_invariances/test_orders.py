"""A convergence order is one only where it no longer changes with the learning rate."""

import numpy as np
import pandas as pd
import pytest

from runner.papers.training_invariances.orders import SAME_DRIFT, local_orders


def drifts(rates, drift):
    """Return the drifts of two replicates. drift: a function of the learning rate."""
    rows = [(replicate, h, (1 + replicate) * drift(h)) for h in rates for replicate in range(2)]
    return pd.DataFrame(rows, columns=["replicate", "learning_rate", "drift"])


@pytest.mark.parametrize(
    ("drift", "order"),
    [
        (lambda h: h, 1),
        (lambda h: h**0.3, 0.3),
        (lambda h: 0.5 + h, 0),
        (lambda h: h + 3 * h**2, 1),
    ],
    ids=["conserved", "power", "moved", "conserved with a further term"],
)
def test_a_drift_near_its_limit_has_the_order_of_the_limit(drift, order):
    found = local_orders(drifts((0.01, 0.005, 0.0025), drift), ["replicate"])
    assert len(found) == 2 and found["asymptotic"].all() and found["moves"].all()
    extrapolated = found["fine"] + found["reach"] * (found["fine"] - found["coarse"])
    np.testing.assert_allclose(found["fine"], order, atol=0.03)
    np.testing.assert_allclose(extrapolated, order, atol=0.002)


def test_a_drift_that_has_two_parts_of_equal_size_is_not_asymptotic():
    """As of Adam before batch norm: a growth that vanishes with h, on top of a constant drift."""
    found = local_orders(drifts((0.4, 0.2, 0.1), lambda h: 0.2 + h), ["replicate"])
    assert found["fine"].between(0.4, 0.5).all() and not found["asymptotic"].any()


def test_the_three_smallest_learning_rates_count():
    """At the larger ones the drift may be anything, such as the infinite drift of divergence."""
    wild = drifts((1.0, 0.5, 0.004, 0.002, 0.001), lambda h: h if h < 0.1 else np.inf)
    assert local_orders(wild, ["replicate"])["asymptotic"].all()
    assert local_orders(drifts((0.5, 0.25), lambda h: h), ["replicate"]).empty


def test_at_learning_rates_that_are_far_apart_the_drift_itself_is_compared():
    """A fourth of an order's tenth is no longer small over a factor of ten in the rate."""
    table = drifts((1.0, 0.1, 0.01), lambda h: h ** (1 + 0.03 * np.log10(h)))
    found = local_orders(table, ["replicate"])
    assert (abs(found["fine"] - found["coarse"]) < 0.1).all()
    assert 10 ** abs(found["fine"] - found["coarse"]).min() > 1 + SAME_DRIFT
    assert not found["asymptotic"].any()


@pytest.mark.parametrize("drift", [0.0, np.nan, np.inf])
def test_no_drift_and_a_diverged_one_have_no_order(drift):
    found = local_orders(drifts((0.01, 0.005, 0.0025), lambda h: drift), ["replicate"])
    assert not found["asymptotic"].any()
