"""The construction in real normalization layers, and what is said of it."""

import math

import pytest
import torch
from in_memory import rows_of

from runner.papers.norm_tuning import theory
from runner.papers.norm_tuning.modules import as_modules
from runner.papers.norm_tuning.network import Layer, Network
from runner.papers.norm_tuning.norm_layers.config import NormLayers
from runner.papers.norm_tuning.norm_layers.study import (
    explained_norm,
    in_training_mode,
    scale_invariant_error,
)

F64 = torch.float64


def rows(**parameters):
    return rows_of(NormLayers(**parameters))


@pytest.fixture
def problem():
    """Target, frozen weights, the parameters of Theorem 1, and inputs; d = 4, m = 16."""
    stream = torch.Generator().manual_seed(0)
    W1, W2, W = (
        torch.randn(*shape, generator=stream, dtype=F64) for shape in ((16, 4), (4, 16), (4, 4))
    )
    x = torch.randn(2000, 4, generator=stream, dtype=F64)
    found, _ = theory.wide_layer(W1, W2, W, W.new_zeros(4), float(x.norm(dim=1).max()))
    return W1, W2, W, found, x


def frozen_b():
    stream = torch.Generator().manual_seed(1)
    return [torch.randn(n, generator=stream, dtype=F64) for n in (16, 4)]


def constructed(W1, W2, found) -> Network:
    first = Layer(W1, found.gamma1, found.beta1, relu=True)
    return Network(((first, Layer(W2, found.gamma2, found.beta2, relu=True)),))


@pytest.mark.parametrize("biases", [None, frozen_b()])
def test_batch_norm_modules_equal_the_target_in_evaluation_mode(problem, biases):
    """Whatever their running statistics (Proposition 1) and biases (Eq. 3) are."""
    W1, W2, W, found, x = problem
    for before in (x, 3 * x[:100] + 1):
        network = as_modules("batch_norm", constructed(W1, W2, found), before, biases)
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


@pytest.mark.parametrize("layer", ["layer_norm", "rms_norm"])
def test_normalizing_samples_gives_the_same_at_every_scale_unless_there_are_biases(problem, layer):
    """Up to the layer's own epsilon."""
    W1, W2, _, found, x = problem
    network = as_modules(layer, constructed(W1, W2, found), x)
    torch.testing.assert_close(network(1e4 * x), network(1e6 * x), rtol=1e-5, atol=1e-5)
    network = as_modules(layer, constructed(W1, W2, found), x, frozen_b())
    assert float((network(x) - network(2 * x)).abs().max()) > 0.1


@pytest.mark.parametrize("layer", ["layer_norm", "rms_norm"])
def test_where_a_layer_normalizes_as_over_all_samples_the_construction_is_exact(problem, layer):
    """One input: its mean and deviation are the means over the inputs."""
    W1, W2, W, found, x = problem
    for biases in (None, frozen_b()):
        network = as_modules(layer, constructed(W1, W2, found), x[:1], biases)
        expected = (x[:1] @ W.mT).relu()
        torch.testing.assert_close(network(x[:1]), expected, rtol=0, atol=1e-9)


def test_the_norm_is_linear_in_what_shows_it_and_not_in_directions(problem):
    *_, x = problem
    for network, explained in (
        (lambda x: x.norm(dim=1, keepdim=True) * torch.tensor([[1.0, 2.0, 0.0]]), 1.0),
        (lambda x: x / x.norm(dim=1, keepdim=True), 0.0),
    ):
        module = torch.nn.Module()
        module.forward = network
        assert explained_norm(module, x[:1000], x[1000:]) == pytest.approx(explained, abs=0.03)


def test_fitted_scales_and_shifts_undercut_the_bound_only_with_biases():
    """d = 4; the bound is for all functions of the direction."""
    options = {"target_width": 4, "layers": ["layer_norm"], "samples": 4096, "replicates": 1}
    least, found = None, {}
    for biases in (False, True):
        *_, norms, start, fitted = rows(biases=biases, fit_steps=100, **options)
        assert (start.mode, fitted.mode) == ("evaluation", "fitted")
        least = least or fitted.lower_bound
        found[biases] = norms.explained, fitted.relative_mse
    assert found[False][0] < 0.05 and found[False][1] > 0.95 * least
    assert found[True][0] > 0.5 and found[True][1] < 0.5 * least


def test_what_else_is_measured_changes_no_number():
    options = {"target_width": 3, "samples": 50, "batch_sizes": [10], "replicates": 2}
    more = rows(layers=["rms_norm", "layer_norm", "batch_norm"], fit_steps=2, **options)
    assert all(row in more for row in rows(**options))


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
