"""What claims of study `invariances` select from the tables, and how they measure it."""

import numpy as np
import pandas as pd
import pytest

from runner.papers.training_invariances.invariances.tables import SERIES, orders
from runner.results.claims import claims_of, judge

RATES = (0.02, 0.01, 0.005)
PLACES = {
    # (architecture, place, item, linear) -> parts of D and whether the paper promises them
    ("linear", "dense-dense", 1, True): {"full": True},
    ("conv", "conv-conv", 2, True): {"full": True},
    ("residual_free", "within residual_free", 3, False): {"active": True, "full": False},
    ("residual_free", "residual_free-residual_free", 4, True): {"full": True},
    ("conv", "conv-dense", 5, True): {"full": True},
    ("mixed", "conv-residual_free", 6, True): {"full": True},
    ("mixed", "dense-residual_free", 7, True): {"full": True},
    ("relu_then_linear", "dense-dense", 1, False): {
        "diagonal": True,
        "active": True,
        "mixed": True,
        "full": False,
    },
    ("residual_identity", "residual_identity-dense", 0, True): {"diagonal": False},
    ("residual_diagonal", "residual_diagonal-dense", 0, True): {"diagonal": True, "full": False},
    ("linear", "dense", 0, True): {"layer": True},
    ("random_graph", "nonlinear units", 0, False): {
        "diagonal": True,
        "active": True,
        "mixed": True,
        "full": False,
    },
    ("random_graph", "linear units", 0, True): {"full": True},
    ("random_graph", "cut", 0, False): {"layer": True, "less an edge": False},
}


def conserved(rate, promised):
    return 0.3 * rate if promised else 0.5 + rate


def metrics(drift=conserved):
    rows = [
        {
            "run": architecture,
            "data": "gaussian",
            "architecture": architecture,
            "integrator": "euler",
            "normalized_time": False,
            "replicate": replicate,
            "learning_rate": rate,
            "time": 20.0,
            "layer": 2,
            "place": place,
            "item": item,
            "linear": linear,
            "pair": pair,
            "promised": promised,
            "entries": 4,
            "drift": drift(rate, promised) * (1 + 0.1 * replicate),
            "initial": 2.0,
        }
        for (architecture, place, item, linear), parts in PLACES.items()
        for pair, promised in parts.items()
        for rate in RATES
        for replicate in range(6)
    ]
    return pd.DataFrame(rows)


def lowrank(
    log_time=lambda time: 2.3 * (time + 1) ** 4,
    residual=lambda time: 1 - 0.98 / (time + 1) ** 2,
    separated=6,
):
    def conv(time):
        return 0.6 if time else 0.05

    def ratio(time):
        return 1 - (1 + time / 1e4) / (time + 1) ** 2

    rows = []
    for time in (0.0, 10.0, 20.0, 24.0, 28.0, 32.0, 36.0, 40.0):
        for replicate in range(6):
            for layer, (kind, bound) in enumerate(
                [("conv", 1 / 16), ("residual_free", 1 / 8), ("dense", 1.0), ("dense", 1.0)],
                start=1,
            ):
                operator_ratio = (conv, residual, ratio, lambda time: 1.0)[layer - 1](time)
                rows.append(
                    {
                        "run": "a",
                        "data": "gaussian",
                        "architecture": "residual_free",
                        "normalized_time": True,
                        "gain": 0.5,
                        "depth": 4,
                        "replicate": replicate,
                        "learning_rate": 0.01,
                        "time": time,
                        "layer": layer,
                        "kind": kind,
                        "frobenius": (time + 1) ** 2,
                        "log_flow_time": log_time(time),
                        "separates": replicate < separated and time > 15,
                        "operator_ratio": operator_ratio,
                        "alignment": float("nan") if layer == 4 else 1 - (1 - ratio(time)) ** 2,
                        "bound": bound,
                        "trivial_bound": 1 / 40,
                        "balanced": False,
                        "finite_bound": 1.0 if layer == 4 else 0.0 if time == 0 else 0.3,
                    }
                )
    table = pd.DataFrame(rows)
    # Four layers of which Theorem 2 says nothing, as before the linear ones at the end.
    plain = table.assign(run="relu", architecture="relu", kind="dense", bound=float("nan"))
    return pd.concat([table, plain], ignore_index=True)


def decomposition():
    rows = [
        {
            "run": "b",
            "replicate": replicate,
            "time": time,
            "paths": 100,
            "output": 2.0,
            "error": 1e-15,
        }
        for time in (0.0, 20.0)
        for replicate in range(6)
    ]
    return pd.DataFrame(rows)


def verdicts(figure, **tables):
    tables = {"decomposition": decomposition()} | tables
    return judge(figure, claims_of(figure, "invariances"), tables).set_index("claim")["verdict"]


def test_a_drift_that_has_nearly_come_back_to_zero_is_judged_by_its_largest():
    back = metrics(lambda rate, promised: 1e-4 * rate**0.5 if promised else 0.5 + rate)
    assert verdicts("first-order", metrics=back)["edge-wise"] == "fails"
    both = pd.concat([metrics().assign(time=10.0), back])
    assert set(verdicts("first-order", metrics=both)) == {"holds"}


def test_no_entries_or_one_rate_decide_nothing():
    table = metrics()
    pairs = table["pair"].isin(["active", "mixed"])
    table.loc[pairs | (table["pair"] == "full") & (table["item"] == 0), "entries"] = 0
    assert verdicts("first-order", metrics=table)["edge-wise"] == "undecided"
    one = metrics().query("learning_rate == 0.01")
    undecided = verdicts("conserved", metrics=one).drop("decomposition")
    assert set(undecided) == {"undecided"}
    assert not one.duplicated(["integrator", *SERIES]).any()


@pytest.mark.parametrize("power", [3.7, 4.4])
def test_an_exponent_within_a_tenth_of_one_over_the_layers_is_that(power):
    table = lowrank(log_time=lambda time: 2.3 * (time + 1) ** power)
    assert verdicts("what-grows", lowrank=table)["weights-diverge"] == "holds"


def test_norms_that_grow_and_come_to_rest_do_not_diverge():
    """They have grown in the second half of the path, as all that rises has."""
    table = lowrank()
    table["frobenius"] = 100 - 99 / (1 + table["time"])
    assert verdicts("what-grows", lowrank=table)["weights-diverge"] == "fails"


def test_the_law_of_the_norms_is_judged_without_skip_connections():
    table = lowrank()
    only = table[table["run"] != "relu"]
    assert verdicts("what-grows", lowrank=only)["weights-diverge"] == "undecided"


@pytest.mark.parametrize(
    "changes", [{"trivial_bound": 0.2}, {"operator_ratio": 0.2}, {"balanced": True}]
)
def test_eq_14_is_judged_only_where_it_says_something(changes):
    """Not where it is below the trivial bound, nor where an untrained network meets it."""
    table = lowrank()
    if "operator_ratio" in changes:
        first = (table["time"] == 0) & (table["bound"] < 1)
        table.loc[first, "operator_ratio"] = changes["operator_ratio"]
    else:
        table = table.assign(**changes)
    assert verdicts("what-grows", lowrank=table)["reduced-alignment"] == "undecided"


def test_eq_13_is_judged_where_it_is_above_the_trivial_bound():
    table = lowrank(residual=lambda time: 0.2)
    table["trivial_bound"] = 0.4
    assert verdicts("what-grows", lowrank=table)["finite-time"] == "undecided"


def test_orders_are_extrapolated_to_rate_zero():
    """A drift of h + 30 h^2 has order 1.27 between the finest rates, and one in the limit."""
    table = metrics(lambda rate, promised: rate + 30 * rate**2 if promised else 0.5)
    found = orders(table[table["pair"] == "layer"])
    assert found["order"].between(0.95, 1.1).all() and found["error"].between(0.1, 0.3).all()
    assert orders(table[table["learning_rate"] < 0.02]).empty
    still = orders(metrics(lambda rate, promised: 0.0))
    assert (still["order"] == np.inf).all() and (still["error"] == 0).all()


@pytest.mark.parametrize(
    ("fine", "coarse", "verdict"), [(0.95, 1.05, "holds"), (0.86, 0.96, "fails")]
)
def test_an_order_that_misses_by_less_than_its_error_refutes_nothing(fine, coarse, verdict):
    """In the limit they are a tenth lower than the finer one, give or take a tenth."""
    table = metrics()
    odd = (table["pair"] == "layer") & (table["replicate"] == 2)
    drifts = dict(zip(sorted(RATES), np.cumprod([1e-3, 2**fine, 2**coarse]), strict=True))
    table.loc[odd, "drift"] = table.loc[odd, "learning_rate"].map(drifts)
    assert verdicts("conserved", metrics=table)["layer-wise"] == verdict


def test_networks_that_do_not_separate_their_examples_are_left_out_up_to_a_fifth():
    table = lowrank(separated=5)
    stuck = table["replicate"] == 5
    table.loc[stuck, ["operator_ratio", "frobenius"]] = 0.01
    claims = claims_of("what-grows", "invariances")
    judged = judge("what-grows", claims, {"lowrank": table}).set_index("claim")
    assert judged.loc["weights-diverge", "verdict"] == "holds"
    assert judged.loc["weights-diverge", "left_out"] == pytest.approx(1 / 6, abs=1e-6)
    assert judged.loc["reduced-alignment", "verdict"] == "holds"
    assert judged.loc["finite-time", "verdict"] == "fails"  # at every time, whatever the loss
    for few in (4, 0):
        found = verdicts("what-grows", lowrank=lowrank(separated=few))
        assert found["weights-diverge"] == found["rank-one"] == "undecided"


def test_a_diverged_rate_decides_nothing():
    table = metrics()
    table.loc[(table["item"] == 4) & (table["learning_rate"] == 0.02), "drift"] = float("inf")
    assert verdicts("first-order", metrics=table)["theorem-1"] == "undecided"
