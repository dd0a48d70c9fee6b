"""Gradient descent with the learning rate c/L at networks of several depths."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from in_memory import context, tables_of, verdicts

from runner.papers.bottleneck_structure.latent import D_IN, D_OUT
from runner.papers.bottleneck_structure.networks import Network, random_network
from runner.papers.bottleneck_structure.recipes import RECIPES
from runner.papers.bottleneck_structure.stability.config import Stability
from runner.papers.bottleneck_structure.stability.quantities import (
    after_over_before,
    growth,
    rate_times_curvature,
)
from runner.papers.bottleneck_structure.stability.study import descended, untrained
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.training import start

TOY = Stability(depths=[4, 6], rates=[0.1, 0.3], samples=8, descent_steps=5, replicates=2)
SMALL = Stability(depths=[4, 6], rates=[0.1], width=6, samples=8, steps=20, descent_steps=3,
                  scratch_steps=8, replicates=2)  # fmt: skip


def by_torch(network: Network, x: torch.Tensor, y: torch.Tensor, rate: float) -> list[torch.Tensor]:
    """Return the weights after steps of torch's SGD with weight decay."""
    theta = [p.clone().requires_grad_() for p in (*network.weights, *network.biases)]
    L = network.depth
    sgd = torch.optim.SGD(theta, lr=rate / L, weight_decay=2 * TOY.ridge)
    for _ in range(TOY.descent_steps):
        sgd.zero_grad()
        outputs = Network(theta[:L], theta[L:]).activations(x.mT)[-1]
        (outputs - y.mT).square().sum(1).mean().backward()
        sgd.step()
    return [p.detach() for p in theta[:L]]


def test_each_network_descends_as_alone_with_its_own_rate():
    stream = torch.Generator().manual_seed(0)
    keys = [(6, 0), (6, 1), (4, 0), (4, 1)]
    networks = {(L, r): random_network([3, *[5] * (L - 1), 2], 1.2, stream) for L, r in keys}
    x, y = (torch.randn(2, n, 8, generator=stream, dtype=torch.float64) for n in (3, 2))
    after = descended(TOY, context(), networks, (x, y))
    assert len(after) == 12
    for L, r in keys:
        for rate in TOY.rates:
            expected = by_torch(networks[L, r], x[r], y[r], rate)
            for W, found in zip(expected, after[L, r, rate][0].weights, strict=True):
                torch.testing.assert_close(found, W, rtol=1e-3, atol=1e-5)


def test_the_curvature_is_that_of_the_network_before_and_of_the_last_steps_after():
    """The curvature of all parameters is above that of the weights; a tiny rate changes nothing."""
    stream = torch.Generator().manual_seed(1)
    networks = {(4, r): random_network([3, 5, 5, 5, 2], 1.4, stream) for r in range(2)}
    x, y = (torch.randn(2, n, 8, generator=stream, dtype=torch.float64) for n in (3, 2))
    config = replace(TOY, rates=[1e-9], descent_steps=30)
    after = descended(config, context(), networks, (x, y))
    for r in range(2):
        (_, first, of_weights), (_, last, last_of_weights) = after[4, r, 0.0], after[4, r, 1e-9]
        assert first > of_weights > 0
        assert (last, last_of_weights) == pytest.approx((first, of_weights), rel=1e-3)


def test_a_run_has_networks_before_and_after_every_rate_of_all_tasks():
    metrics = tables_of(SMALL)["metrics"]
    assert len(metrics) == 3 * 2 * 2 * 2
    exact = metrics.query("task == 'example-20' and rate == 0")
    assert (exact["train_cost"] < 1e-20).all()
    assert metrics["distance"].isna().equals(metrics["depth"] == 4)


def test_training_from_scratch_has_its_own_depths_rates_and_steps():
    config = replace(SMALL, scratch_depths=[5], scratch_rates=[0.2], scratch_steps=300)
    metrics = tables_of(config)["metrics"].query("task == 'scratch'")
    assert set(metrics["depth"]) == {5} and set(metrics["rate"]) == {0.0, 0.2}
    costs = metrics.pivot(index="replicate", columns="rate", values="train_cost")
    assert (costs[0.2] < 0.9 * costs[0.0]).all()


def test_networks_from_scratch_begin_with_the_weights_of_the_networks_trained_by_adam():
    """So that the two differ in the training alone."""
    stack = DepthStack([6, 4], SMALL.width, D_IN, D_OUT)
    start(stack, [1, 1], RECIPES["annealed"], SMALL.stream)
    networks = untrained(SMALL)
    for n, L in enumerate((6, 4)):
        for W, same in zip(networks[L, 1].weights, stack.network(n).weights, strict=True):
            torch.testing.assert_close(W, same, rtol=1e-6, atol=1e-7)


@pytest.fixture
def metrics() -> pd.DataFrame:
    """Networks whose kernel grows like L² before and like √L after gradient descent."""
    index = pd.MultiIndex.from_product([[6, 12, 24], [0.0, 0.2], [0, 1]])
    rows = index.to_frame(index=False, name=["depth", "rate", "replicate"])
    power = np.where(rows["rate"] == 0, 2, 0.5)
    return rows.assign(
        task="figure-1",
        train_cost=0.01,
        ntk_trace=3 * rows["depth"] ** power,
        curvature=rows["depth"] * np.where(rows["rate"] == 0, 3, 1),
    )


def test_quantities_of_known_networks(metrics):
    tables = {"metrics": metrics}
    assert growth("ntk_trace", "figure-1").measure(tables)["value"].tolist() == pytest.approx(
        [0.5] * 2
    )
    before = growth("ntk_trace", "figure-1", "c == 0").measure(tables)["value"]
    assert before.tolist() == pytest.approx([2.0] * 2)
    product = rate_times_curvature("figure-1", "L < 24").measure(tables)
    assert set(product["value"].round(9)) == {0.2} and set(product["depth"]) == {6, 12}
    assert set(product["before"].round(9)) == {0.6}
    ratio = after_over_before("ntk_trace", "figure-1", "L == 12").measure(tables)["value"]
    assert ratio.tolist() == pytest.approx([12**-1.5] * 2)


@pytest.fixture
def both() -> pd.DataFrame:
    """Eight replicates of all tasks as the paper expects them; kernel and change fall with c."""
    tasks = ["figure-1", "scratch", "example-20"]
    index = pd.MultiIndex.from_product([tasks, [6, 12, 24], [0.0, 0.1, 0.2], range(8)])
    rows = index.to_frame(index=False, name=["task", "depth", "rate", "replicate"])
    depth, before, ours = rows["depth"], rows["rate"] == 0, rows["task"] != "example-20"
    return rows.assign(
        train_cost=np.where(ours | before, 0.01, 0.05),
        ntk_trace=np.where(ours, depth**0.5 / (1 + rows["rate"]), depth**3.0),
        curvature=1.95 * depth / rows["rate"].where(~before, 0.02),
        distance=(1 / depth).where(depth > 6),
    )


@pytest.mark.parametrize(
    ("claim", "column", "change"),
    [
        ("rate-bounds-kernel", "curvature", lambda rows: 3 * rows["curvature"]),
        ("rate-bounds-kernel", "curvature", lambda rows: rows["curvature"].where(
            rows["rate"] == 0, 0.8 * rows["curvature"])),
        ("large-rate-small-kernel", "ntk_trace", lambda rows: 1 / rows["ntk_trace"]),
        ("edge-from-scratch", "curvature", lambda rows: 0.8 * rows["curvature"]),
        ("kernel-from-scratch", "ntk_trace", lambda rows: rows["ntk_trace"] ** 4),
        ("representations-converge", "distance", lambda rows: 1 / rows["distance"]),
        ("divergent-networks-are-narrow", "ntk_trace", lambda rows: 1 / rows["ntk_trace"]),
        ("divergent-networks-are-left", "train_cost", lambda rows: 0 * rows["train_cost"]),
    ],
)  # fmt: skip
def test_every_claim_about_rates_holds_and_fails(both, claim, column, change):
    assert verdicts("bottleneck-rates", {"metrics": both}, claim) == {claim: "holds"}
    altered = both.assign(**{column: change})
    assert verdicts("bottleneck-rates", {"metrics": altered}, claim) == {claim: "fails"}


@pytest.mark.parametrize(
    "claim",
    ["rate-bounds-kernel", "large-rate-small-kernel", "edge-from-scratch", "kernel-from-scratch"],
)
@pytest.mark.parametrize(("lost", "verdict"), [(1, "holds"), (2, "undecided")])
def test_claims_about_networks_that_fit_have_no_verdict_where_two_of_eight_do_not(
    both, claim, lost, verdict
):
    costs = both["train_cost"].where((both["replicate"] >= lost) | (both["rate"] == 0), 1.0)
    altered = both.assign(train_cost=costs)
    assert verdicts("bottleneck-rates", {"metrics": altered}, claim) == {claim: verdict}
