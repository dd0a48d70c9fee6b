"""Gradients of what a network is, tensors of its own, and formulas at tiny and huge sizes."""

import math
import warnings

import numpy as np
import pytest
import torch

from runner.core.errors import InputError
from runner.core.streams import generators
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank import ascent
from runner.papers.batch_norm_rank import theory as rank_theory
from runner.papers.batch_norm_rank.rank_chain.batch_means import BatchMeans, mean_and_error
from runner.papers.batch_norm_rank.starts import TanhBatchNorm
from runner.papers.norm_tuning import theory
from runner.papers.norm_tuning.arithmetic import MultiPrecision
from runner.papers.norm_tuning.network import relu_network

SIZES = [6, 5, 5, 5, 3]


def drawn(seed: int = 0):
    return draw("pytorch", SIZES, generators(seed, 2, "start"), torch.float64)


def inputs() -> torch.Tensor:
    return torch.randn(2, 6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def by_autograd(network: MLP, X, layer: int, power: float, activated: bool) -> dict:
    """The gradients of r^power by what `descend` moves."""
    network = network.map(lambda tensor: tensor)
    names = [f"{n}{i}" for i in range(1, layer + 1) for n in ("Wb" if activated else "W")]
    for name in names:
        network.parameters[name].requires_grad_()
    H = X
    for each in range(1, layer):
        H = network.layer(each, H)
    top = network.layer(layer, H) if activated else network._affine(layer, H)
    loss = rank_theory.rank_bound(top).pow(power).sum()
    found = torch.autograd.grad(loss, [network.parameters[name] for name in names])
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("activation", ["relu", "tanh", "leaky_relu"])
@pytest.mark.parametrize("normalization", ["none", "batch", "batch_no_mean"])
@pytest.mark.parametrize("skip", [math.inf, 0.5])
@pytest.mark.parametrize("activated", [True, False])
def test_descent_is_by_the_gradient_of_the_network_or_refused(
    activation, normalization, skip, activated
):
    network, X = MLP(*drawn(), activation, normalization, skip), inputs()
    before = network.map(torch.clone)
    try:
        ascent.descend(network, X, 3, -0.5, 1e-3, activated=activated)
    except InputError:
        assert (activation, normalization, skip) != ("relu", "none", math.inf)
        return
    for name, gradient in by_autograd(before, X, 3, -0.5, activated).items():
        moved = before.parameters[name] - network.parameters[name]
        torch.testing.assert_close(moved, 1e-3 * gradient, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("activation", ["linear", "tanh", "leaky_relu"])
@pytest.mark.parametrize("normalization", ["none", "batch"])
def test_ascent_by_layers_is_by_the_gradient_of_the_network_or_refused(activation, normalization):
    network, X = MLP(*drawn(), activation, normalization), inputs()
    moves = []

    def move(theta, gradient):
        moves.append([each.clone() for each in gradient])

    try:
        next(ascent.raise_layer_wise(network, [X], 1, move, unit_scale=False))
    except InputError:
        return
    W, b = by_autograd(network, X, 1, 1.0, True).values()
    torch.testing.assert_close(moves[0][0], W)
    torch.testing.assert_close(moves[0][1], b)


@pytest.mark.parametrize("make", [MLP, TanhBatchNorm])
def test_two_networks_of_one_draw_share_nothing(make):
    weights, biases = drawn()
    one, other = make(weights, biases), make(weights, biases)
    before = {name: tensor.clone() for name, tensor in other.state().items()}
    for tensor in one.state().values():
        tensor += 1
    for name, tensor in other.state().items():
        assert torch.equal(tensor, before[name])
    assert torch.equal(weights[0], before["W1"])


def target(d: int = 4):
    stream = torch.Generator().manual_seed(0)
    W = [torch.randn(d, d, dtype=torch.float64, generator=stream) for _ in range(2)]
    return relu_network(W, [torch.randn(d, dtype=torch.float64, generator=stream) for _ in W])


@pytest.mark.parametrize("of_first", [1e-160, 1.0, 1e120])
@pytest.mark.parametrize("of_second", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("width", [16, 40])
def test_the_construction_is_exact_for_frozen_weights_of_any_size(of_first, of_second, width):
    d, x = 4, torch.randn(50, 4, dtype=torch.float64)
    x = x / x.norm(dim=1, keepdim=True)
    pairs = theory.wide_weights(target(d), width, torch.Generator().manual_seed(1))
    pairs = [(of_first * W1, of_second * W2) for W1, W2 in pairs]
    made = theory.wide(target(d), pairs)
    error = (made.network(x) - target(d)(x)).abs().max()
    if of_first * of_second > 1e-300:  # else the scales leave the range of float64
        assert made.full_rank and error < 1e-8
    else:
        assert error.isnan()


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1.0, 1e200])
def test_many_digits_know_no_range(size):
    stream = torch.Generator().manual_seed(2)
    shapes = [(4, 2), (2, 4), (2, 2)]
    W1, W2, W = (torch.randn(*s, dtype=torch.float64, generator=stream) for s in shapes)
    arithmetic = MultiPrecision(100)
    exact = arithmetic.exact
    usual = arithmetic.solve_scales(exact(W1), exact(W2), exact(W))
    scaled = arithmetic.solve_scales(exact(size * W1), exact(size * W2), exact(W))
    assert scaled.solvable and scaled.condition_number == pytest.approx(usual.condition_number)


@pytest.mark.parametrize("p", [1e-20, 1e-12, 1e-3, 0.5, 1.0])
def test_the_probability_of_live_units_of_few_weights(p):
    d = k = 10
    exactly = -math.expm1(d * math.log1p(-p)) * -math.expm1(k * math.log1p(-p)) if p < 1 else 1
    assert theory.live_units_probability(d, k, 1, p) == pytest.approx(exactly, rel=1e-12)
    assert exactly > 0


@pytest.mark.parametrize("size", [1e-200, 1e-5, 1.0, 1e150, 1e200, 1.7e308])
def test_a_mean_and_its_error_at_any_size(size):
    mean, error = mean_and_error([size, -size, size / 2])
    assert mean == pytest.approx(size / 6) and error == pytest.approx(size * 0.600925, rel=1e-5)
    moments = torch.tensor([[size, -size, 0], [1, 1, 1]], dtype=torch.float64)
    means = BatchMeans(moments[..., None].expand(2, 3, 5), 3)
    assert means.deviation("soft_rank") == pytest.approx(1)


def test_a_ratio_to_nothing_is_not_a_number():
    means = BatchMeans(torch.zeros(2, 3, 5, dtype=torch.float64), 3)
    assert all(map(math.isnan, means.ratio("soft_rank", "rank_bound")))


@pytest.mark.parametrize("width", [0, 1])
def test_a_gap_needs_two_singular_values(width):
    with pytest.raises(InputError, match="at least 2"):
        rank_theory.lyapunov_gap(width, 0.5, 10, torch.Generator())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(rank_theory.lyapunov_gap(2, 0.5, 10, torch.Generator())).all()
