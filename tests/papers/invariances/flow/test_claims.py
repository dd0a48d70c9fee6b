"""Each claim of paper C holds on a table that shows it and fails on one that does not."""

import pandas as pd
import pytest

from runner.papers.invariances.flow.tables import SERIES
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
                            }
                        )
    return pd.DataFrame(rows)


def lowrank(
    ratio=lambda time: 1 - 1 / time**2, log_loss=lambda time: -time, residual=0.6, separated=6
):
    rows = []
    for time in (10.0, 20.0, 24.0, 28.0, 32.0, 36.0, 40.0):
        for replicate in range(6):
            for layer, (kind, bound) in enumerate(
                [("residual_free", 1 / 8), ("dense", 1.0), ("dense", 1.0)], start=1
            ):
                operator_ratio = residual if layer == 1 else 1.0 if layer == 3 else ratio(time)
                rows.append(
                    {
                        "run": "a",
                        "architecture": "residual_free",
                        "normalized_time": True,
                        "depth": 3,
                        "replicate": replicate,
                        "learning_rate": 0.01,
                        "time": time,
                        "layer": layer,
                        "kind": kind,
                        "frobenius": time**2,
                        "log_loss": log_loss(time),
                        "separates": replicate < separated and time > 15,
                        "operator_ratio": operator_ratio,
                        "alignment": float("nan") if layer == 3 else 1 - (1 - ratio(time)) ** 2,
                        "bound": bound,
                        "sharp_bound": 0.5 if layer == 1 else 1.0,
                        "finite_bound": 0.3 if layer < 3 else 1.0,
                    }
                )
    return pd.DataFrame(rows)


def verdicts(figure, **tables):
    return judge(figure, claims_of(figure, "invariances"), tables).set_index("claim")["verdict"]


@pytest.mark.parametrize("figure", ["invariances-fig1", "invariances-fig2"])
def test_invariants_as_the_paper_says_hold(figure):
    assert set(verdicts(figure, metrics=metrics())) == {"holds"}


@pytest.mark.parametrize(
    "claim", [f"item-{n}" for n in range(1, 8)] + ["vertex-wise", "edge-wise", "layer-wise"]
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
    assert set(verdicts("invariances-fig1", metrics=one)) == {"undecided"}
    assert not one.duplicated(["integrator", *SERIES]).any()


def test_low_rank_as_the_paper_says_holds():
    assert set(verdicts("invariances-fig3", lowrank=lowrank())) == {"holds"}


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("rank-one", {"ratio": lambda time: 0.9 - time / 1000}),
        ("alignment", {"ratio": lambda time: 0.9 - time / 1000}),
        ("weights-diverge", {"log_loss": lambda time: time}),
        ("reduced-alignment", {"residual": 0.1}),
        ("sharper", {"residual": 0.4}),
        ("finite-time", {"residual": 0.2}),
    ],
)
def test_a_table_that_violates_a_claim_of_figure_3_fails_it(claim, changes):
    assert verdicts("invariances-fig3", lowrank=lowrank(**changes))[claim] == "fails"


def test_replicates_that_do_not_separate_their_examples_do_not_count():
    table = lowrank(separated=5)
    stuck = table["replicate"] == 5
    table.loc[stuck, ["operator_ratio", "frobenius"]] = 0.01
    judged = judge(
        "invariances-fig3", claims_of("invariances-fig3", "invariances"), {"lowrank": table}
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
