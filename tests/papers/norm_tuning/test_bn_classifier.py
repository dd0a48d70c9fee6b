"""A classifier inside a frozen network, and what is said of it."""

import pandas as pd
import pytest
import torch

from runner.data.datasets import load
from runner.papers.norm_tuning.bn_classifier import study
from runner.papers.norm_tuning.bn_classifier.config import BnClassifier
from runner.results.claims import claims_of, judge


@pytest.fixture(scope="module")
def data():
    return load("digits", {}, None, 0, None)


@pytest.fixture(scope="module")
def problem(data):
    return study.drawn(BnClassifier(target_width=5), data, 0)


def test_the_built_network_gives_the_logits_of_its_target(data, problem):
    target, pairs = problem
    built = study.built_network(data, target, pairs)
    found = study.columns(built, target, data)
    assert found["agreement"] == 1 and found["max_abs_error"] < 1e-8
    assert found["test_accuracy"] == study.accuracy(target, data.test) > 0.5


def test_both_networks_have_the_same_weights_and_set_the_same_parameters(data, problem):
    target, pairs = problem
    built, start = study.built_network(data, target, pairs), study.normalized(pairs)
    assert study.size(built) == study.size(start) == 2 * (64 * 5 + 5 + 5 * 10 + 10)
    for ours, theirs in zip(built[::3], start[::3], strict=True):
        torch.testing.assert_close(ours.weight.float(), theirs.weight)


def test_training_changes_scales_and_shifts_alone_and_learns(data, problem):
    network = study.normalized(problem[1])
    before = [layer.weight.clone() for layer in network[::3]]
    config = BnClassifier(target_width=5, epochs=3)
    rows = list(study.trained(config, data, network, 0, 0.03))
    assert [row.epoch for row in rows] == [1, 2, 3]
    assert rows[-1].train_accuracy > rows[0].train_accuracy + 0.1
    for layer, weight in zip(network[::3], before, strict=True):
        assert torch.equal(layer.weight, weight)


def verdicts(error=1e-9, agreement=1.0) -> pd.Series:
    rows = []
    for replicate in range(10):
        for network, accuracy in (("construction", 0.97), ("bn_only", 0.95), ("target", 0.97)):
            rows.append(
                {
                    "network": network,
                    "replicate": replicate,
                    "test_accuracy": accuracy + 0.001 * replicate,
                    "agreement": agreement,
                    "max_abs_error": error,
                }
            )
    tables = {"metrics": pd.DataFrame(rows)}
    claims = claims_of("bn-classifier", "bn_classifier")
    return judge("bn-classifier", claims, tables).set_index("claim")["verdict"]


def test_each_claim_holds_and_can_fail():
    assert set(verdicts()) == {"holds"}
    assert verdicts(error=1e-3)["classifier-in-batch-norm"] == "fails"
    assert verdicts(agreement=0.999)["classifier-in-batch-norm"] == "fails"
