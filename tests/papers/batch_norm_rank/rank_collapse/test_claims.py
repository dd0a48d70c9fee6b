"""The claims of study `rank_collapse`: tables that make each hold, fail and stay undecided."""

from math import nan

import pandas as pd
import pytest

from runner.results.claims import claims_of, judgement


def verdicts(figure, tables):
    return {e.name: judgement(e, tables).verdict for e in claims_of(figure, "rank_collapse")}


def depth_tables(
    vanilla=0.1, batch=0.97, shallow=1.0, depths=(1, 8, 32), replicates=5, ranks=None, r=1.0
):
    """Figure 1: the given accuracies at the largest depth; ranks: of the last layer there."""
    ranks = {"none": 1, "batch": 40, "shallow": 40} | (ranks or {})
    metrics, training = [], []
    for depth in depths:
        for normalization, accuracy in (("none", vanilla), ("batch", batch)):
            for replicate in range(replicates):
                deep = depth == max(depths)
                rank = ranks[normalization] if deep or normalization == "batch" else 0
                rank = rank or ranks["shallow"]
                common = {"depth": depth, "normalization": normalization, "replicate": replicate}
                bound = r if deep and normalization == "none" else 5.0
                own = {"layer": depth, "matrix_rank": rank, "rank_bound": bound, "width": 64}
                metrics.append(common | own)
                end = accuracy + 1e-3 * replicate if deep else shallow
                common |= {"learning_rate": 0.1, "epoch": 3, "train_loss": 1 - end}
                training.append(common | {"train_accuracy": end})
    return {"metrics": pd.DataFrame(metrics), "training": pd.DataFrame(training)}


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({}, set()),
        ({"vanilla": 0.5}, {"vanilla-cannot-learn"}),
        ({"vanilla": nan}, set()),
        ({"batch": 0.6}, {"batch-norm-loses-little"}),
        ({"shallow": 0.1}, {"vanilla-cannot-learn"}),
        ({"ranks": {"none": 3}}, {"vanilla-rank-collapses"}),
        ({"r": 2.0}, {"vanilla-rank-collapses"}),
        ({"ranks": {"shallow": 1}}, {"vanilla-rank-collapses"}),
        ({"ranks": {"batch": 7}}, {"batch-norm-keeps-rank"}),
    ],
)
def test_claims_of_figure_1_follow_the_numbers(changes, failing):
    """Seven replicates, as three points need six to fail at one of them."""
    found = verdicts("rank-fig1", depth_tables(replicates=7, **changes))
    assert {name for name, verdict in found.items() if verdict == "fails"} == failing
    others = {verdict for name, verdict in found.items() if name not in failing}
    assert others <= ({"holds"} if "shallow" not in changes else {"holds", "undecided", "fails"})


@pytest.mark.parametrize(
    "changes", [{"depths": (32,)}, {"depths": (2, 4, 8)}, {"replicates": 1}, {"replicates": 4}]
)
def test_one_depth_shallow_networks_and_few_replicates_decide_nothing(changes):
    assert set(verdicts("rank-fig1", depth_tables(**changes)).values()) == {"undecided"}


def test_a_high_numerical_rank_above_ten_layers_is_no_collapse_undone():
    """At 12 layers rounding still counts directions that r, and learning, do not see."""
    tables = depth_tables(depths=(1, 12, 32), replicates=7)
    metrics, training = tables["metrics"], tables["training"]
    at_12 = (metrics["depth"] == 12) & (metrics["normalization"] == "none")
    metrics.loc[at_12, ["matrix_rank", "rank_bound"]] = [16, 1.0]
    unable = (training["depth"] == 12) & (training["normalization"] == "none")
    training.loc[unable, "train_accuracy"] = 0.1
    assert set(verdicts("rank-fig1", tables).values()) == {"holds"}
    metrics.loc[at_12, "rank_bound"] = 2.0
    assert verdicts("rank-fig1", tables)["vanilla-rank-collapses"] == "fails"


def test_a_single_replicate_with_another_rank_decides_nothing_alone():
    tables = depth_tables()
    metrics = tables["metrics"]
    odd = (metrics["depth"] == 32) & (metrics["replicate"] == 2)
    metrics.loc[odd, "matrix_rank"] = 5
    found = verdicts("rank-fig1", tables)
    assert found["vanilla-rank-collapses"] == found["batch-norm-keeps-rank"] == "undecided"


def layer_tables(vanilla: dict[int, int], batch=9, no_mean=9, replicates=6):
    """Figure 2: the rank of vanilla networks by layer, and that of batch norm, of width 16."""
    rows = [
        {"activation": activation, "dtype": dtype, "normalization": normalization, "layer": layer}
        | {"replicate": replicate, "width": 16, "depth": max(vanilla), "matrix_rank": rank}
        for activation in ("linear", "relu")
        for dtype in ("float32", "float64")
        for replicate in range(replicates)
        for layer, of_vanilla in vanilla.items()
        for normalization, rank in (
            ("none", of_vanilla),
            ("batch", batch),
            ("batch_no_mean", no_mean),
        )
    ]
    return {"metrics": pd.DataFrame(rows)}


@pytest.mark.parametrize(
    ("vanilla", "batch", "no_mean", "expected"),
    [
        ({1: 16, 50: 4, 100: 1}, 9, 9, ["holds", "holds"]),
        ({1: 16, 50: 1, 100: 2}, 9, 9, ["fails", "holds"]),
        ({1: 16, 50: 9, 100: 9}, 9, 9, ["fails", "holds"]),
        ({1: 16, 50: 4, 100: 1}, 3, 9, ["holds", "fails"]),
        ({1: 16, 50: 4, 100: 1}, 9, 3, ["holds", "fails"]),
    ],
)
def test_claims_of_figure_2_follow_the_ranks(vanilla, batch, no_mean, expected):
    found = verdicts("rank-fig2", layer_tables(vanilla, batch, no_mean, replicates=8))
    assert list(found.values()) == expected * 2


def test_rounding_that_adds_a_second_value_in_one_network_of_eight_refutes_nothing():
    tables = layer_tables({1: 16, 50: 4, 100: 1}, replicates=8)
    rows = tables["metrics"]
    odd = (rows["normalization"] == "none") & (rows["layer"] == 100) & (rows["replicate"] == 3)
    rows.loc[odd, "matrix_rank"] = 3
    assert set(verdicts("rank-fig2", tables).values()) == {"holds"}


def test_one_network_decides_nothing_of_figure_2():
    found = verdicts("rank-fig2", layer_tables({1: 16, 50: 4, 100: 1}, replicates=1))
    assert set(found.values()) == {"undecided"}
