"""Gradient descent with the learning rate c/L at networks of several depths."""

import numpy as np
import pandas as pd
import pytest
import torch
from in_memory import context, tables_of, verdicts

from runner.papers.bottleneck_structure.networks import Network, random_network
from runner.papers.bottleneck_structure.stability.config import Stability
from runner.papers.bottleneck_structure.stability.quantities import growth, rate_times_curvature
from runner.papers.bottleneck_structure.stability.study import descended

TOY = Stability(depths=[4, 6], rates=[0.1, 0.3], samples=8, descent_steps=5, replicates=2)


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
    x, y = (torch.randn(4, n, 8, generator=stream) for n in (3, 2))
    after = descended(TOY, context(), networks, (x, y))
    assert len(after) == 8
    for n, (L, r) in enumerate(keys):
        for rate in TOY.rates:
            expected = by_torch(networks[L, r], x[n].double(), y[n].double(), rate)
            for W, found in zip(expected, after[L, r, rate].weights, strict=True):
                torch.testing.assert_close(found, W, rtol=1e-3, atol=1e-5)


def test_a_run_has_networks_before_and_after_every_rate_of_both_tasks():
    metrics = tables_of(Stability(depths=[4, 6], rates=[0.1], width=6, samples=8, steps=20,
                                  descent_steps=3, replicates=2))["metrics"]  # fmt: skip
    assert len(metrics) == 2 * 2 * 2 * 2
    exact = metrics.query("task == 'example-20' and rate == 0")
    assert (exact["train_cost"] < 1e-20).all()
    assert metrics["distance"].isna().equals(metrics["depth"] == 4)


@pytest.fixture
def metrics() -> pd.DataFrame:
    """Networks whose kernel grows like L² before and like √L after gradient descent."""
    index = pd.MultiIndex.from_product([[6, 12, 24], [0.0, 0.4], [0, 1]])
    rows = index.to_frame(index=False, name=["depth", "rate", "replicate"])
    power = np.where(rows["rate"] == 0, 2, 0.5)
    return rows.assign(
        task="figure-1",
        train_cost=0.01,
        ntk_trace=3 * rows["depth"] ** power,
        curvature=rows["depth"],
    )


def test_quantities_of_known_networks(metrics):
    tables = {"metrics": metrics}
    assert growth("ntk_trace", "figure-1").measure(tables)["value"].tolist() == pytest.approx(
        [0.5] * 2
    )
    before = growth("ntk_trace", "figure-1", "c == 0").measure(tables)["value"]
    assert before.tolist() == pytest.approx([2.0] * 2)
    assert set(rate_times_curvature("figure-1").measure(tables)["value"].round(9)) == {0.4}


@pytest.fixture
def both() -> pd.DataFrame:
    """Eight replicates of both tasks as the paper expects them; kernel and change fall with c."""
    index = pd.MultiIndex.from_product(
        [["figure-1", "example-20"], [6, 12, 24], [0.0, 0.1, 0.4], range(8)]
    )
    rows = index.to_frame(index=False, name=["task", "depth", "rate", "replicate"])
    depth, before, ours = rows["depth"], rows["rate"] == 0, rows["task"] == "figure-1"
    return rows.assign(
        train_cost=np.where(ours | before, 0.01, 0.05),
        ntk_trace=np.where(ours, depth**0.5 / (1 + rows["rate"]), depth**3.0),
        curvature=depth / rows["rate"].where(~before, 0.02),
        distance=(1 / depth).where(depth > 6),
    )


@pytest.mark.parametrize(
    ("claim", "column", "change"),
    [
        ("rate-bounds-kernel", "curvature", lambda rows: 3 * rows["curvature"]),
        ("large-rate-small-kernel", "ntk_trace", lambda rows: 1 / rows["ntk_trace"]),
        ("kernel-of-order-depth", "ntk_trace", lambda rows: rows["ntk_trace"] ** 4),
        ("representations-converge", "distance", lambda rows: 1 / rows["distance"]),
        ("divergent-networks-are-narrow", "ntk_trace", lambda rows: 1 / rows["ntk_trace"]),
        ("divergent-networks-are-left", "train_cost", lambda rows: 0 * rows["train_cost"]),
    ],
)
def test_every_claim_about_rates_holds_and_fails(both, claim, column, change):
    assert verdicts("bottleneck-rates", {"metrics": both}, claim) == {claim: "holds"}
    altered = both.assign(**{column: change})
    assert verdicts("bottleneck-rates", {"metrics": altered}, claim) == {claim: "fails"}
