"""What claims of study `low_rank_training` exclude, and when they are measured."""

from math import exp

import pandas as pd
import pytest

from runner.papers.training_invariances.low_rank_training.tables import (
    METHODS,
    at_common_time,
    steady,
)
from runner.results.claims import claims_of, judge

TRAINING, BEYOND = "low-rank-training", "beyond-gradient-flow"
REPLICATES = range(8)
OPTIMIZERS = {"minibatch": 5, "momentum": 1, "adam": 1}


def row(**changes):
    return {
        "data": "digits",
        "classes": 2,
        "architecture": "mlp",
        "optimizer": "sgd",
        "loss_function": "logistic",
        "minibatches": 1,
        "gain": 0.5,
        "width": 32,
        "learning_rate": 0.1,
        "weight_decay": 0.0,
        "replicate": 0,
        "epoch": 64,
        "time": 6.4,
        "diverged": False,
        "layer": 4,
        "frobenius": 10.0,
        "ratio": 0.3,
        "remainder": 7.0,
        "lower": 5.0,
        "upper": 9.0,
        "dtype": "float32",
        **changes,
    }


def table(rows):
    """With a last layer beside each, and the run that a row belongs to."""
    found = pd.DataFrame(rows)
    last = found.assign(layer=5, remainder=0.0, lower=0.0, upper=0.0, ratio=1.0)
    found = pd.concat([found, last], ignore_index=True)
    knobs = ["classes", "optimizer", "minibatches", "width", "learning_rate", "dtype"]
    return found.assign(run=found[knobs].astype(str).agg(" ".join, axis=1))


def without_decay():
    rows = []
    for replicate in REPLICATES:
        for classes in (2, 10):
            loss = "logistic" if classes == 2 else "cross_entropy"
            of = {"replicate": replicate, "classes": classes, "loss_function": loss}
            for gain in (0.25, 0.5, 1.0, 2.0):
                start = {"epoch": 0, "time": 0.0, "remainder": 6.7, "frobenius": 8.0}
                rows.append(row(**of, gain=gain, **start))
                rows.append(row(**of, gain=gain))
    return {"layers": table(rows)}


def with_decay():
    rows = []
    for replicate in REPLICATES:
        for optimizer in OPTIMIZERS:
            for decay in (0.0, 0.003, 0.01):
                of = {
                    "optimizer": "sgd" if optimizer == "minibatch" else optimizer,
                    "minibatches": OPTIMIZERS[optimizer],
                    "weight_decay": decay,
                    "replicate": replicate,
                }
                for classes in (2, 10):
                    fallen = 7 * exp(-2 * decay * 6.4)
                    rows.append(row(**of, classes=classes, remainder=fallen))
    return {"layers": table(rows)}


def judged(figure, tables):
    return judge(figure, claims_of(figure, "low_rank_training"), tables).set_index("claim")


def verdicts(figure, tables):
    return judged(figure, tables)["verdict"].to_dict()


def test_networks_that_diverged_are_left_out_and_counted():
    tables = without_decay()
    layers = tables["layers"]
    gone = (layers["replicate"] == 3) & (layers["gain"] == 1.0) & (layers["epoch"] > 0)
    layers.loc[gone, ["diverged", "remainder"]] = True, 1e9
    left = steady(tables)
    assert not ((left["replicate"] == 3) & (left["gain"] == 1.0)).any()
    assert set(left["method"]) <= set(METHODS)
    found = judged(TRAINING, tables)
    assert found.loc["band", "verdict"] == "holds"
    assert found.loc["band", "left_out"] == pytest.approx(1 / 32)
    layers.loc[layers["replicate"] < 2, "diverged"] = True
    assert verdicts(TRAINING, tables)["band"] == "undecided"


def test_where_either_diverged_nothing_is_said_of_decay():
    tables = with_decay()
    layers = tables["layers"]
    gone = (layers["replicate"] < 2) & (layers["weight_decay"] == 0)
    layers.loc[gone, ["diverged", "remainder"]] = True, 1e9
    found = judged(BEYOND, tables).loc["decay"]
    assert found["verdict"] == "undecided" and found["left_out"] == pytest.approx(1 / 4)


def test_a_time_that_not_all_were_measured_at_is_not_common():
    rows = pd.DataFrame(
        {"method": "SGD", "time": [1.0, 2.0, 1.0, 2.0, 4.0], "width": [8, 8, 16, 16, 16]}
    )
    assert at_common_time(rows, "width")["time"].tolist() == [2.0, 2.0]
