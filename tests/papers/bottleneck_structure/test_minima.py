"""The search for the lowest loss of each depth."""

import pytest
import torch

from runner.core.errors import InputError
from runner.core.streams import generator
from runner.networks.spectra import svdvals
from runner.papers.bottleneck_structure import minima as engine
from runner.papers.bottleneck_structure import theory
from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck
from runner.papers.bottleneck_structure.bottleneck.latent import draw_task
from runner.papers.bottleneck_structure.minima import (
    Problem,
    _loss_and_gradient,
    balanced,
    lengthened,
    minima,
    polished,
    pruned,
    shortened,
)
from runner.papers.bottleneck_structure.networks import Network
from runner.papers.bottleneck_structure.spectra import gap_rank

RIDGE = 1e-3


@pytest.fixture(autouse=True)
def few_sweeps(monkeypatch):
    monkeypatch.setattr(engine, "SWEEPS", 1)


@pytest.fixture(scope="module")
def problem() -> Problem:
    task = draw_task(2, 30, 10, generator(0, 0, "task"))
    return Problem(task.x, task.y, RIDGE)


def network(depth: int = 4, width: int = 8) -> Network:
    stream = generator(0, 0, "network")
    sizes = [20, *[width] * (depth - 1), 20]
    weights, biases = [], []
    for n_in, n_out in zip(sizes, sizes[1:], strict=False):
        W = torch.randn(n_out, n_in, generator=stream, dtype=torch.float64)
        weights.append(W * (2 / n_in) ** 0.5)
        biases.append(0.1 * torch.randn(n_out, generator=stream, dtype=torch.float64))
    return Network(weights, biases)


def outputs(network: Network, problem: Problem) -> torch.Tensor:
    return network.activations(problem.x.mT)[-1]


def test_balancing_keeps_the_function_and_takes_the_smallest_norm(problem):
    start = network()
    found = balanced(start, sweeps=300)
    torch.testing.assert_close(outputs(found, problem), outputs(start, problem))
    assert theory.imbalance(found) < 1e-8 < theory.imbalance(start)
    assert found.parameter_norm() < start.parameter_norm()


def test_neurons_through_which_nothing_passes_are_removed_and_one_is_left(problem):
    start = network()
    start.weights[1][3] = 0
    start.biases[1][3] = 0
    start.weights[3][:, 5] = 0
    found = pruned(start)
    assert [len(b) for b in found.biases] == [8, 7, 7, 20]
    torch.testing.assert_close(outputs(found, problem), outputs(start, problem))
    dead = Network([torch.zeros_like(W) for W in start.weights], start.biases)
    assert [len(b) for b in pruned(dead).biases] == [1, 1, 1, 20]
    assert balanced(pruned(dead)).parameter_norm().isfinite()


@pytest.mark.parametrize("at_once", [500, 17])
def test_the_gradient_is_that_of_automatic_differentiation(problem, at_once, monkeypatch):
    monkeypatch.setattr(engine, "SAMPLES_AT_ONCE", at_once)
    start = network()
    theta = torch.cat([t.flatten() for t in (*start.weights, *start.biases)]).requires_grad_()
    shapes = [tuple(W.shape) for W in start.weights]
    sizes = [W.numel() for W in start.weights] + [len(b) for b in start.biases]
    parts = theta.split(sizes)
    H = problem.x
    for index, (m, n) in enumerate(shapes):
        Z = parts[index].view(m, n) @ H + parts[len(shapes) + index][:, None]
        H = Z.relu() if index < len(shapes) - 1 else Z
    loss = (H - problem.y).square().sum(0).mean() + RIDGE * theta.square().sum()
    loss.backward()
    x, y = problem.x.numpy(), problem.y.numpy()
    value, gradient = _loss_and_gradient(theta.detach().numpy(), shapes, x, y, RIDGE)
    assert value == pytest.approx(float(loss.detach()), rel=1e-12)
    assert value == pytest.approx(problem.loss(start), rel=1e-12)
    torch.testing.assert_close(torch.from_numpy(gradient), theta.grad)


def test_polishing_ends_lower_balanced_and_nearly_where_the_gradient_vanishes(problem):
    start = network()
    found = polished(start, problem)
    assert problem.loss(found) < 0.3 * problem.loss(start)
    assert theory.imbalance(found) < 1e-6


def test_neighbours_in_depth_start_near_a_minimum(problem):
    """A layer put in costs about lambda k, and the k leading directions are all that it keeps."""
    best = polished(polished(network(), problem), problem)
    k = gap_rank(svdvals(best.weights[1]))
    longer, shorter = lengthened(best, problem), shortened(best, problem)
    assert longer.depth == 5 and shorter.depth == 3
    ranks = [int((svdvals(W) > 1e-9).sum()) for W in longer.weights]
    assert k in ranks[1:-1]
    zero = float(problem.y.square().sum(0).mean())
    assert problem.loss(longer) < zero and problem.loss(shorter) < zero


def test_a_linear_layer_is_merged_without_loss_of_the_function(problem):
    """Where a ReLU is always on it does not matter that merging leaves it out."""
    start = network(depth=3)
    start.biases[0].fill_(100.0)
    start.weights[1].div_(100)
    start.weights[2].zero_()
    start.biases[1].fill_(-1e3)  # the second layer is off: the pair that costs least is the first
    merged = shortened(start, problem)
    torch.testing.assert_close(outputs(merged, problem), outputs(start, problem))


def test_one_more_layer_costs_at_most_lambda_k(problem):
    """`F(L + 1) <= F(L) + lambda k`; every depth is reached, none is worse than its start."""
    starts = {L: network(L) for L in (3, 4, 5)}
    ticks = []
    found = minima(starts, starts, problem, lambda network, loss: ticks.append(loss))
    assert [network.depth for network in found.values()] == list(found) == [3, 4, 5] and ticks
    for L in starts:
        assert problem.loss(found[L]) <= problem.loss(polished(starts[L], problem))
    for shallow, deep in ((3, 4), (4, 5)):
        k = int((svdvals(found[shallow].weights[shallow // 2 - 1]) > 1e-3).sum())
        rise = problem.loss(found[deep]) - problem.loss(found[shallow])
        assert rise <= (deep - shallow) * RIDGE * k + 1e-6


def test_depths_without_a_start_are_reached_from_their_neighbours(problem):
    ticks = []
    starts = {4: network(4)}
    found = minima(starts, [6, 3, 4, 5], problem, lambda network, loss: ticks.append(loss))
    assert [network.depth for network in found.values()] == list(found) == [3, 4, 5, 6]
    assert len(ticks) >= 4
    assert all(problem.loss(each) < 1 for each in found.values())


def test_starts_are_among_the_depths_of_minima():
    with pytest.raises(InputError, match="are not among the depths"):
        Bottleneck(recipe="minimum", depths=[4, 6], start_depths=[5])
    with pytest.raises(InputError, match="is for recipe=minimum"):
        Bottleneck(recipe="plain", depths=[4, 6], start_depths=[4])


def test_a_network_that_has_diverged_is_no_start_and_no_failure(problem):
    starts = {L: network(L) for L in (3, 4, 5)}
    starts[5].weights[0].fill_(float("nan"))
    found = minima(starts, starts, problem)
    assert problem.loss(found[5]) < 1 and problem.loss(found[3]) < 1  # found from its neighbour
    for start in starts.values():
        start.weights[0].fill_(float("nan"))
    found = minima(starts, starts, problem)
    assert all(problem.loss(each) != problem.loss(each) for each in found.values())


def test_sweeps_are_repeated_until_no_neighbour_helps(problem, monkeypatch):
    monkeypatch.setattr(engine, "SWEEPS", 6)
    starts = {L: network(L) for L in (3, 4)}
    found = minima(starts, starts, problem)
    again = minima(found, found, problem)
    for L, best in found.items():
        assert problem.loss(again[L]) <= problem.loss(best)
        assert problem.loss(again[L]) > (1 - 5 * engine.SETTLED) * problem.loss(best)
