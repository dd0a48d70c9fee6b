"""Each claim of paper C holds on a table that shows it and fails on one that does not."""

import pandas as pd
import pytest

from runner.papers.training_invariances.invariances.items import ITEMS
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
}


def conserved(rate, promised, integrator):
    if integrator == "rk4":
        return 1e-3 * rate**4
    return 0.3 * rate if promised else 0.5 + rate


def metrics(drift=conserved):
    rows = []
    for integrator in ("euler", "rk4"):
        for (architecture, place, item, linear), parts in PLACES.items():
            for pair, promised in parts.items():
                for rate in RATES:
                    for replicate in range(6):
                        rows.append(
                            {
                                "run": f"{integrator} {architecture}",
                                "data": "gaussian",
                                "architecture": architecture,
                                "integrator": integrator,
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
                                "drift": drift(rate, promised, integrator) * (1 + 0.1 * replicate),
                                "initial": 2.0,
                                "loss": "logistic",
                                "negative_slope": 0.0,
                                "biases": False,
                            }
                        )
    return pd.DataFrame(rows)


def lowrank(
    ratio=lambda time: 1 - (1 + time / 1e4) / (time + 1) ** 2,
    log_loss=lambda time: -time,
    residual=lambda time: 1 - 1 / (time + 1) ** 2,
    conv=lambda time: 0.6,
    separated=6,
):
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
                        "log_flow_time": 2.3 * time,
                        "skip_share": 0.5 if kind == "residual_free" else float("nan"),
                        "log_loss": log_loss(time),
                        "separates": replicate < separated and time > 15,
                        "operator_ratio": operator_ratio,
                        "alignment": float("nan") if layer == 4 else 1 - (1 - ratio(time)) ** 2,
                        "bound": bound,
                        "sharp_bound": 0.5 if layer == 2 else 0.25 if layer == 1 else 1.0,
                        "finite_bound": 1.0 if layer == 4 else 0.0 if time == 0 else 0.3,
                    }
                )
    return pd.DataFrame(rows)


def assumptions(sign_changes=0.0):
    rows = [
        {
            "run": "a",
            "normalized_time": True,
            "learning_rate": 0.01,
            "replicate": replicate,
            "time": time,
            "sign_changes": sign_changes if time == 36.0 and replicate == 0 else 0.0,
            "turned": 0.01,
            "off": 0.1,
        }
        for time in (0.0, 10.0, 20.0, 36.0, 40.0)
        for replicate in range(6)
    ]
    return pd.DataFrame(rows)


def decomposition(error=1e-15):
    rows = [
        {
            "run": "b",
            "replicate": replicate,
            "time": time,
            "paths": 100,
            "output": 2.0,
            "error": error,
            "frozen_error": 0.5 * time,
        }
        for time in (0.0, 20.0)
        for replicate in range(6)
    ]
    return pd.DataFrame(rows)


def verdicts(figure, **tables):
    tables = {"assumptions": assumptions(), "decomposition": decomposition()} | tables
    return judge(figure, claims_of(figure, "invariances"), tables).set_index("claim")["verdict"]


@pytest.mark.parametrize("figure", ["invariances-fig1", "invariances-fig2"])
def test_invariants_as_the_paper_says_hold(figure):
    assert set(verdicts(figure, metrics=metrics())) == {"holds"}


@pytest.mark.parametrize(
    "claim",
    [f"item-{each.number}" for each in ITEMS]
    + ["vertex-wise", "edge-wise", "edge-wise-mixed", "layer-wise"],
)
def test_a_plateau_where_the_theorem_holds_fails(claim):
    table = metrics(lambda rate, promised, integrator: 0.5)
    assert verdicts("invariances-fig2", metrics=table)[claim] == "fails"


@pytest.mark.parametrize("claim", ["relu-not-invariant", "identity-skip", "diagonal-skip"])
def test_convergence_where_nothing_is_conserved_fails(claim):
    table = metrics(lambda rate, promised, integrator: rate)
    assert verdicts("invariances-fig2", metrics=table)[claim] == "fails"


def test_a_limit_of_zero_fails_lemma_4():
    table = metrics(lambda rate, promised, integrator: rate)
    assert verdicts("invariances-fig1", metrics=table)["relu-limit"] == "fails"


def test_runge_kutta_steps_of_second_order_fail():
    table = metrics(lambda rate, promised, integrator: rate**2 if integrator == "rk4" else rate)
    assert verdicts("invariances-fig2", metrics=table)["integrator"] == "fails"


def test_one_replicate_that_does_not_converge_fails():
    table = metrics()
    odd = (table["item"] == 5) & (table["replicate"] == 2)
    table.loc[odd, "drift"] = 0.1
    assert verdicts("invariances-fig2", metrics=table)["item-5"] == "fails"


def test_no_entries_or_one_rate_decide_nothing():
    table = metrics()
    table.loc[table["pair"] == "active", "entries"] = 0
    assert verdicts("invariances-fig2", metrics=table)["edge-wise"] == "undecided"
    one = metrics().query("learning_rate == 0.01")
    undecided = verdicts("invariances-fig1", metrics=one).drop("decomposition")
    assert set(undecided) == {"undecided"}
    assert not one.duplicated(["integrator", *SERIES]).any()


def test_low_rank_as_the_paper_says_holds():
    assert set(verdicts("invariances-fig3", lowrank=lowrank())) == {"holds"}


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("rank-one", {"ratio": lambda time: 0.9 - time / 1000}),
        ("alignment", {"ratio": lambda time: 0.9 - time / 1000}),
        ("weights-diverge", {"log_loss": lambda time: time}),
        ("reduced-alignment", {"residual": lambda time: 0.1}),
        ("sharper", {"residual": lambda time: 0.4}),
        ("finite-time", {"residual": lambda time: 0.2}),
        ("blocks-align", {"residual": lambda time: 0.9}),
        ("convolutions-reduced", {"conv": lambda time: 1 - 1 / (time + 1) ** 2}),
        ("rest-stays", {"ratio": lambda time: 1 - (1 - time / 1e4) / (time + 1) ** 2}),
    ],
)
def test_a_table_that_violates_a_claim_of_figure_3_fails_it(claim, changes):
    assert verdicts("invariances-fig3", lowrank=lowrank(**changes))[claim] == "fails"


def test_a_change_of_sign_late_breaks_assumption_1():
    table = assumptions(sign_changes=0.01)
    judged = verdicts("invariances-fig3", lowrank=lowrank(), assumptions=table)
    assert judged["stable-signs"] == "fails" and judged["rank-one"] == "holds"


def test_a_network_that_is_no_tree_fails_lemma_1():
    judged = verdicts(
        "invariances-fig1", metrics=metrics(), decomposition=decomposition(error=1e-3)
    )
    assert judged["decomposition"] == "fails"


def test_orders_are_extrapolated_to_rate_zero():
    """A drift of h + 30 h^2 has order 1.27 between the finest rates, and one in the limit."""
    table = metrics(
        lambda rate, promised, integrator: (
            1e-3 * rate**4 if integrator == "rk4" else rate + 30 * rate**2 if promised else 0.5
        )
    )
    found = orders(table[(table["pair"] == "layer") & (table["integrator"] == "euler")])
    assert found["order"].between(0.95, 1.1).all()
    assert orders(table[table["learning_rate"] < 0.02]).empty


def test_replicates_that_do_not_separate_their_examples_do_not_count():
    table = lowrank(separated=5)
    stuck = table["replicate"] == 5
    table.loc[stuck, ["operator_ratio", "frobenius"]] = 0.01
    judged = judge(
        "invariances-fig3",
        claims_of("invariances-fig3", "invariances"),
        {"lowrank": table, "assumptions": assumptions()},
    )
    judged = judged.set_index("claim")
    assert judged.loc["weights-diverge", "verdict"] == "holds"
    assert "5 of 6" in judged.loc["weights-diverge", "measured"]
    assert judged.loc["reduced-alignment", "verdict"] == "holds"
    assert judged.loc["finite-time", "verdict"] == "fails"  # at every time, whatever the loss
    nobody = verdicts("invariances-fig3", lowrank=lowrank(separated=0))
    assert nobody["weights-diverge"] == nobody["rank-one"] == "undecided"


def test_a_diverged_rate_decides_nothing():
    table = metrics()
    table.loc[(table["item"] == 4) & (table["learning_rate"] == 0.02), "drift"] = float("inf")
    assert verdicts("invariances-fig2", metrics=table)["item-4"] == "undecided"
