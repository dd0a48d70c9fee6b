"""What claims of study `invariances` select from the tables, and how they measure it."""

import numpy as np
import pandas as pd
import pytest
from in_memory import judged, kept_tables, verdicts

from runner.papers.training_invariances.invariances.tables import SERIES, orders

RATES = (0.02, 0.01, 0.005)


@pytest.fixture
def lowrank() -> pd.DataFrame:
    return kept_tables("what-grows")["lowrank"]


@pytest.fixture
def metrics() -> pd.DataFrame:
    return kept_tables("first-order")["metrics"]


def drifts(drift) -> pd.DataFrame:
    """Return drifts of six networks at three learning rates; drift: function of the rate."""
    network = dict.fromkeys(SERIES, 0) | {"time": 20.0, "initial": 2.0, "entries": 4}
    rows = [
        network | {"replicate": replicate, "learning_rate": rate, "drift": drift(rate)}
        for rate in RATES
        for replicate in range(6)
    ]
    return pd.DataFrame(rows)


def test_a_drift_that_has_nearly_come_back_to_zero_is_judged_by_its_largest(metrics):
    last = metrics["time"] == metrics["time"].max()
    metrics.loc[last & metrics["promised"], "drift"] *= 1e-6
    assert verdicts("first-order", {"metrics": metrics})["edge-wise"] == "holds"
    only = metrics[last].copy()
    only.loc[only["promised"], "drift"] = 1e-4 * only["learning_rate"] ** 0.5
    assert verdicts("first-order", {"metrics": only})["edge-wise"] == "fails"


def test_no_entries_one_rate_or_a_diverged_rate_decide_nothing(metrics):
    one = metrics[metrics["learning_rate"] == metrics["learning_rate"].min()]
    assert set(verdicts("first-order", {"metrics": one}).values()) == {"undecided"}
    empty = metrics.assign(entries=0)
    assert verdicts("first-order", {"metrics": empty})["edge-wise"] == "undecided"
    lost = metrics.eval("pair == 'full' and linear and item > 0 and replicate == 0")
    metrics.loc[lost, "drift"] = np.inf
    assert verdicts("first-order", {"metrics": metrics})["theorem-1"] == "undecided"


@pytest.mark.parametrize(("power", "verdict"), [(2.85, "holds"), (3.2, "holds"), (4.0, "fails")])
def test_an_exponent_within_a_tenth_of_one_over_the_layers_is_that(lowrank, power, verdict):
    """Six layers without skip connections: log t is the third power of the squared norm."""
    lowrank["frobenius"] = lowrank["time"] + 1
    lowrank["log_flow_time"] = 2.3 * (lowrank["time"] + 1) ** power
    assert verdicts("what-grows", {"lowrank": lowrank})["weights-diverge"] == verdict


def test_norms_that_grow_and_come_to_rest_do_not_diverge(lowrank):
    """They grow in the second half of the path, too."""
    lowrank["frobenius"] = 100 - 99 / (1 + lowrank["time"])
    assert verdicts("what-grows", {"lowrank": lowrank})["weights-diverge"] == "fails"


def test_the_growth_of_the_norms_is_judged_without_skip_connections(lowrank):
    free = lowrank[lowrank["architecture"] == "residual_free"]
    assert len(free) and verdicts("what-grows", {"lowrank": free})["weights-diverge"] == "undecided"


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("reduced-alignment", {"trivial_bound": 1.0}),
        ("reduced-alignment", {"operator_ratio": 1.0}),
        ("reduced-alignment", {"balanced": True}),
        ("finite-time", {"trivial_bound": 1.0}),
    ],
)
def test_a_bound_is_judged_only_where_it_says_something(lowrank, claim, changes):
    """A trivial bound must be lower, and an untrained network must violate it."""
    assert verdicts("what-grows", {"lowrank": lowrank})[claim] == "holds"
    untrained = (lowrank["time"] == 0) | ("operator_ratio" not in changes)
    for column, value in changes.items():
        lowrank[column] = lowrank[column].mask(untrained, value)
    assert verdicts("what-grows", {"lowrank": lowrank})[claim] == "undecided"


def test_orders_are_extrapolated_to_rate_zero():
    """A drift of h + 5 h² has order 1.05 between the finest rates, and one in the limit."""
    table = drifts(lambda rate: rate + 5 * rate**2)
    found = orders(table)
    assert found["order"].between(0.99, 1.01).all() and found["error"].between(0.02, 0.05).all()
    assert orders(table[table["learning_rate"] < 0.02]).empty
    still = orders(drifts(lambda rate: 0.0))
    assert (still["order"] == np.inf).all() and (still["error"] == 0).all()


def test_an_order_that_still_changes_is_none():
    """A drift of h + 30 h² has local orders that differ by 0.16; it decides nothing."""
    changing = orders(drifts(lambda rate: rate + 30 * rate**2))
    assert len(changing) == 6 and changing["order"].isna().all()


def test_networks_that_do_not_separate_their_examples_are_left_out_up_to_a_fifth(lowrank):
    """One network in twelve is left out; with one of eight replicates more it is a fifth."""
    for stuck, verdict, left_out in ((0, "holds", 1 / 12), (1, "undecided", 5 / 24)):
        lowrank.loc[lowrank["replicate"] < stuck, "separates"] = False
        found = judged("what-grows", {"lowrank": lowrank}).loc["weights-diverge"]
        assert (found["verdict"], found["left_out"]) == (verdict, pytest.approx(left_out, abs=1e-6))
