"""The construction in real normalization layers, and what is said of it."""

import math

import pandas as pd
import pytest
import torch

from runner.papers.norm_tuning import theory
from runner.papers.norm_tuning.modules import as_modules
from runner.papers.norm_tuning.network import Block, Layer, Network
from runner.papers.norm_tuning.norm_layers.study import in_training_mode, scale_invariant_error
from runner.results.claims import claims_of, judge

F64 = torch.float64


@pytest.fixture
def problem():
    """Target, frozen weights, the parameters of Theorem 1, and inputs; d = 4, m = 16."""
    stream = torch.Generator().manual_seed(0)
    W1, W2, W = (
        torch.randn(*shape, generator=stream, dtype=F64) for shape in ((16, 4), (4, 16), (4, 4))
    )
    x = torch.randn(2000, 4, generator=stream, dtype=F64)
    found = theory.wide_layer(W1, W2, W, W.new_zeros(4), float(x.norm(dim=1).max()))
    return W1, W2, W, found, x


def constructed(W1, W2, found) -> Network:
    first = Layer(W1, found.gamma1, found.beta1, relu=True)
    return Network((Block((first, Layer(W2, found.gamma2, found.beta2, relu=True))),))


def test_batch_norm_modules_equal_the_target_in_evaluation_mode(problem):
    """Whatever their running statistics are (Proposition 1)."""
    W1, W2, W, found, x = problem
    for before in (x, 3 * x[:100] + 1):
        network = as_modules("batch_norm", constructed(W1, W2, found), before)
        assert [type(layer).__name__ for layer in network][1::3] == ["BatchNorm1d"] * 2
        torch.testing.assert_close(network(x), (x @ W.mT).relu(), rtol=0, atol=1e-9)


def test_training_mode_normalizes_with_the_batch_and_leaves_the_running_statistics(problem):
    W1, W2, _, found, x = problem
    network = as_modules("batch_norm", constructed(W1, W2, found), x)
    running = network[1].running_mean.clone()
    f = in_training_mode(network, x, 600)
    assert len(f) == 1800 and not network.training
    torch.testing.assert_close(network[1].running_mean, running)
    z = x[:600] @ W1.mT
    z = (z - z.mean(0)) / (z.var(0, correction=0) + network[1].eps).sqrt()
    z = (network[1].weight * z + network[1].bias).relu() @ W2.mT
    z = (z - z.mean(0)) / (z.var(0, correction=0) + network[4].eps).sqrt()
    expected = (network[4].weight * z + network[4].bias).relu().sum(1)
    torch.testing.assert_close(f[:600], expected)


def test_layer_norm_gives_the_same_at_every_scale(problem):
    """Up to LayerNorm's own epsilon."""
    W1, W2, _, found, x = problem
    network = as_modules("layer_norm", constructed(W1, W2, found), x)
    torch.testing.assert_close(network(1e4 * x), network(1e6 * x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("d", [1, 3, 10])
def test_the_best_function_of_the_direction_has_the_error_of_the_formula(d):
    """E||x|| g(x / ||x||), by simulation."""
    stream = torch.Generator().manual_seed(d)
    W = torch.randn(d, d, generator=stream, dtype=F64)
    x = torch.randn(400_000, d, generator=stream, dtype=F64)
    g, r = (x @ W.mT).relu().sum(1), x.norm(dim=1)
    best = r.mean() * g / r
    assert scale_invariant_error(d, g) == pytest.approx(
        float((best - g).square().mean() / g.var()), rel=0.02
    )
    assert r.mean() == pytest.approx(
        math.sqrt(2) * math.gamma((d + 1) / 2) / math.gamma(d / 2), rel=0.01
    )


def table(**changes) -> pd.DataFrame:
    """Ten replicates of two widths as the paper has it; changes: of relative_mse by series."""
    rows = []
    for d in (5, 10):
        for replicate in range(10):
            series = {("batch_norm", "evaluation", 0): changes.get("exact", 1e-28)}
            for B in (16, 64, 256, 1024, 4096):
                error = changes.get("scale", 10) / B ** changes.get("exponent", 1.0)
                series["batch_norm", "training", B] = error
            series["layer_norm", "evaluation", 0] = changes.get("layer_norm", 0.9)
            for (layer, mode, B), mse in series.items():
                bound = changes.get("bound", 0.4) if layer == "layer_norm" else 0.0
                rows.append(
                    {
                        "target_width": d, "layer": layer, "mode": mode, "batch_size": B,
                        "replicate": replicate, "relative_mse": mse * (1 + 0.01 * replicate),
                        "condition_number": 100.0, "input_norm": 8.0, "lower_bound": bound,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def verdicts(metrics: pd.DataFrame) -> pd.Series:
    claims = claims_of("norm-layers", "norm_layers")
    return judge("norm-layers", claims, {"metrics": metrics}).set_index("claim")["verdict"]


def test_all_claims_hold_on_a_table_that_shows_them():
    assert set(verdicts(table())) == {"holds"}


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"exact": 1e-10}, "batch-norm-exact"),
        ({"scale": 0.1}, "batch-statistics-matter"),
        ({"exponent": -0.5}, "batch-error-falls"),
        ({"bound": 0.001}, "layer-norm-cannot"),
        ({"layer_norm": 0.1}, "layer-norm-cannot"),
    ],
)
def test_each_claim_can_fail(changes, claim):
    assert verdicts(table(**changes))[claim] == "fails"
