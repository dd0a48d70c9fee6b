"""Each claim of `low_rank_training` comes out both ways on tables that were made for it."""

from math import exp

import pandas as pd
import pytest

from runner.papers.training_invariances.low_rank_training.tables import (
    METHODS,
    at_common_time,
    steady,
)
from runner.results.claims import claims_of, judge

REPLICATES = range(8)
OPTIMIZERS = {"sgd": 1, "minibatch": 5, "momentum": 1, "adam": 1, "adamw": 1}


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
        "top": 3.0,
        "remainder": 7.0,
        "lower": 5.0,
        "upper": 9.0,
        "drift": 0.1,
        "initial_invariant": 1.0,
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


def without_decay(
    ratios=(0.6, 0.3, 0.13, 0.11), kept=1.05, exponents=(1.0, 0.0), remainder=7.0, **changes
):
    rows = []
    for replicate in REPLICATES:
        for classes in (2, 10):
            loss = "logistic" if classes == 2 else "cross_entropy"
            of = {"replicate": replicate, "classes": classes, "loss_function": loss}
            for gain, ratio in zip((0.25, 0.5, 1.0, 2.0), ratios, strict=True):
                start = remainder / kept
                rows.append(row(**of, gain=gain, epoch=0, time=0.0, remainder=start, frobenius=8.0))
                rows.append(row(**of, gain=gain, ratio=ratio, remainder=remainder, **changes))
        for width in (16, 64, 128):
            sizes = {
                "remainder": 7 * (width / 32) ** exponents[0],
                "top": 3 * (width / 32) ** exponents[1],
                "lower": 0.0,
                "upper": 1e3,
            }
            rows.append(row(replicate=replicate, width=width, **sizes))
            rows.append(row(replicate=replicate, width=width, epoch=0, time=0.0, **sizes))
    return {"layers": table(rows)}


def with_decay(off=None, orders=None, rank=5, inside=True):
    """off: by method, how far from exp(-2 lambda T); orders: of the drift, by method."""
    off, orders = off or {}, {"sgd": 1, "momentum": 1, "adam": 0} | (orders or {})
    rows, spectrum = [], []
    for replicate in REPLICATES:
        for optimizer in OPTIMIZERS:
            for decay in (0.0, 0.003, 0.01, *[0.1] * (optimizer == "adamw")):
                of = {
                    "optimizer": "sgd" if optimizer == "minibatch" else optimizer,
                    "minibatches": OPTIMIZERS[optimizer],
                    "weight_decay": decay,
                    "replicate": replicate,
                }
                fallen = exp(-2 * decay * 6.4)
                strong = "strong" if decay > 0.01 else optimizer
                moved = off.get(strong, 1.0) if decay else 1.0
                rows.append(
                    row(**of, remainder=7 * fallen * moved, lower=5 * fallen, upper=9 * fallen)
                )
        for optimizer, order in orders.items():
            for rate in (0.04, 0.02, 0.01):
                of = {"optimizer": optimizer, "learning_rate": rate, "dtype": "float64"}
                for steps in (64, 128, 256):
                    drift = rate**order * (1 + 0.1 * replicate)
                    rows.append(
                        row(**of, replicate=replicate, epoch=steps, time=steps * rate, drift=drift)
                    )
        for decay in (0.0, 0.01):
            for layer in (4, 5):
                for index in range(1, 13):
                    of = {"classes": 10, "minibatches": 5, "weight_decay": decay, "layer": layer}
                    value = 1.0 if index <= rank else 0.1
                    spectrum.append(
                        {**row(**of, replicate=replicate), "index": index, "singular_value": value}
                    )
    layers = table(rows)
    if not inside:
        layers.loc[layers["optimizer"] == "momentum", "upper"] /= 10
    return {"layers": layers, "spectrum": pd.DataFrame(spectrum).assign(run="ten")}


def verdicts(number, tables):
    figure = f"invariances-fig{number}"
    judged = judge(figure, claims_of(figure, "low_rank_training"), tables)
    return judged.set_index("claim")["verdict"].to_dict()


NAIVE = {
    "low-rank-at-gain-one",
    "remainder-never-grows",
    "coupled-decay",
    "strong-decoupled-decay",
    "rank-of-ten-classes",
}


def test_what_is_expected_of_training_without_decay():
    for claim, verdict in verdicts(4, without_decay()).items():
        assert verdict == ("fails" if claim in NAIVE else "holds"), claim


def test_the_naive_statements_can_hold_too():
    found = verdicts(4, without_decay(ratios=(0.99, 0.97, 0.95, 0.93), kept=0.95))
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("band", {"upper": 6.0}),
        ("band", {"lower": 7.5}),
        ("norm-alone", {"kept": 0.85}),
        ("norm-alone", {"frobenius": 7.0}),
        ("order-of-gains", {"ratios": (0.3, 0.6, 0.13, 0.11)}),
        ("width-of-remainder", {"exponents": (1.2, 0.0)}),
        ("width-of-top", {"exponents": (1.0, 0.1)}),
    ],
)
def test_a_planted_violation_is_caught(claim, changes):
    found = verdicts(4, without_decay(**changes))
    assert [
        name for name, verdict in found.items() if verdict == "fails" and name not in NAIVE
    ] == [claim]


def test_one_row_outside_its_bounds_is_enough():
    tables = without_decay()
    tables["layers"].loc[37, "remainder"] = 9.01
    assert verdicts(4, tables)["band"] == "fails"


def test_what_is_expected_beyond_the_flow():
    tables = with_decay(off={"adam": 1e-6, "strong": 1.6})
    for claim, verdict in verdicts(5, tables).items():
        assert verdict == ("fails" if claim in NAIVE else "holds"), claim


def test_the_naive_statements_on_decay_can_hold_too():
    assert set(verdicts(5, with_decay(rank=9)).values()) == {"holds"}


@pytest.mark.parametrize(("rank", "verdict"), [(9, "holds"), (5, "fails")])
def test_ranks_on_two_datasets_are_not_added(rank, verdict):
    tables = with_decay(rank=rank)
    other = tables["spectrum"].assign(data="fashion_mnist", run="ten of fashion_mnist")
    tables["spectrum"] = pd.concat([tables["spectrum"], other], ignore_index=True)
    figure = "invariances-fig5"
    judged = judge(figure, claims_of(figure, "low_rank_training"), tables).set_index("claim")
    assert judged.loc["rank-of-ten-classes", "verdict"] == verdict
    assert judged.loc["rank-of-ten-classes", "measured"].startswith(f"{rank} to {rank} values")


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("band-under-decay", {"inside": False}),
        ("decay", {"off": {"momentum": 0.9}}),
        ("decoupled-decay", {"off": {"adamw": 1.1}}),
        ("order-one", {"orders": {"momentum": 0}}),
        ("order-zero", {"orders": {"adam": 1}}),
    ],
)
def test_a_violation_beyond_the_flow_is_caught(claim, changes):
    found = verdicts(5, with_decay(rank=9, **changes))
    assert [name for name, verdict in found.items() if verdict == "fails"] == [claim]


def test_networks_that_diverged_are_left_out_and_counted():
    tables = without_decay()
    layers = tables["layers"]
    gone = (layers["replicate"] == 3) & (layers["gain"] == 1.0) & (layers["epoch"] > 0)
    layers.loc[gone, ["diverged", "remainder"]] = True, 1e9
    left = steady(tables, "layers")
    assert not ((left["replicate"] == 3) & (left["gain"] == 1.0)).any()
    assert set(left["method"]) <= set(METHODS)
    figure = "invariances-fig4"
    judged = judge(figure, claims_of(figure, "low_rank_training"), tables).set_index("claim")
    assert judged.loc["band", "verdict"] == "holds"
    assert "2 of 88 networks diverged" in judged.loc["band", "measured"]


def test_a_time_that_not_all_were_measured_at_is_not_common():
    rows = pd.DataFrame(
        {"data": "x", "time": [1.0, 2.0, 1.0, 2.0, 4.0], "width": [8, 8, 16, 16, 16]}
    )
    assert at_common_time(rows, ["data"], "width")["time"].tolist() == [2.0, 2.0]
