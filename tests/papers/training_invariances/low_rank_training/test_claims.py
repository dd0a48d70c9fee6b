"""What claims of study `low_rank_training` exclude, and when they are measured."""

from in_memory import judged, kept_tables

from runner.papers.training_invariances.low_rank_training.tables import METHODS, steady


def test_networks_that_diverge_at_any_time_are_left_out_and_counted():
    tables = kept_tables("low-rank-training")
    layers = tables["layers"]
    before = judged("low-rank-training", tables).loc["band", "left_out"]
    layers.loc[(layers["replicate"] == 3) & (layers["epoch"] == 1), "diverged"] = True
    assert set(steady(tables)["replicate"]) == set(range(13)) - {3}
    assert set(steady(tables)["method"]) <= set(METHODS)
    found = judged("low-rank-training", tables).loc["band"]
    assert found["verdict"] == "holds" and before < found["left_out"] < 0.2
    layers.loc[layers["replicate"] < 4, "diverged"] = True
    assert judged("low-rank-training", tables).loc["band", "verdict"] == "undecided"


def test_a_network_without_decay_that_diverged_says_nothing_of_decay():
    tables = kept_tables("beyond-gradient-flow")
    layers = tables["layers"]
    before = judged("beyond-gradient-flow", tables).loc["decay"]
    lost = (layers["replicate"] < 4) & (layers["weight_decay"] == 0)
    layers.loc[lost, ["diverged", "remainder"]] = True, 1e9
    found = judged("beyond-gradient-flow", tables).loc["decay"]
    assert before["verdict"] == "holds" and found["verdict"] == "undecided"
    assert 4 / 13 <= found["left_out"] <= 4 / 13 + before["left_out"]
