"""The search for the lowest loss of each depth."""

import os
from math import inf, isnan

import numpy as np
import pytest
import torch
import warm

from runner.core.streams import generator
from runner.networks.spectra import svdvals
from runner.papers.bottleneck_structure import descent, theory
from runner.papers.bottleneck_structure import minima as engine
from runner.papers.bottleneck_structure.latent import draw_task
from runner.papers.bottleneck_structure.minima import (
    Problem,
    _descended,
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


def each_once(starts: dict[int, Network]) -> dict[int, list[Network]]:
    return {L: [network] for L, network in starts.items()}


@pytest.fixture(autouse=True)
def little_work(monkeypatch):
    monkeypatch.setattr(engine, "SWEEPS", 1)
    monkeypatch.setattr(engine, "GAIN", 1e-2)


@pytest.fixture(scope="module")
def problem() -> Problem:
    task = draw_task(2, 20, 5, generator(0, 0, "task"))
    return Problem(task.x, task.y, RIDGE)


def network(depth: int = 4, width: int = 6) -> Network:
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
    assert [len(b) for b in found.biases] == [6, 5, 5, 20]
    torch.testing.assert_close(outputs(found, problem), outputs(start, problem))
    dead = Network([torch.zeros_like(W) for W in start.weights], start.biases)
    assert [len(b) for b in pruned(dead).biases] == [1, 1, 1, 20]
    assert balanced(pruned(dead)).parameter_norm().isfinite()


def test_the_gradient_is_that_of_automatic_differentiation(problem):
    start = network()
    layers = [
        torch.cat([W, b[:, None]], 1) for W, b in zip(start.weights, start.biases, strict=True)
    ]
    shapes = [tuple(layer.shape) for layer in layers]
    theta = torch.cat([layer.flatten() for layer in layers]).requires_grad_()
    H = problem.x
    for index, part in enumerate(theta.split([layer.numel() for layer in layers])):
        layer = part.view(shapes[index])
        Z = layer[:, :-1] @ H + layer[:, -1:]
        H = Z.relu() if index < len(shapes) - 1 else Z
    loss = (H - problem.y).square().sum(0).mean() + RIDGE * theta.square().sum()
    loss.backward()
    x, y = np.concatenate([problem.x, np.ones_like(problem.x[:1])]), problem.y.numpy()
    sizes = np.array([20, *(m for m, _ in shapes)])
    room, gradient = np.empty(1000 * x.shape[1]), np.empty(len(theta))
    value = descent._loss_and_gradient(theta.detach().numpy(), sizes, x, y, RIDGE, room, gradient)
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


def test_one_more_layer_costs_at_most_lambda_k_also_without_a_start(problem):
    """`F(L + 1) <= F(L) + lambda k`; every depth is reached, none is worse than its start."""
    starts = {L: network(L) for L in (3, 4)}
    ticks = []
    found = minima(each_once(starts), [5, 3, 4], problem, lambda network, loss: ticks.append(loss))
    assert [best.network.depth for best in found.values()] == list(found) == [3, 4, 5] and ticks
    for L, start in starts.items():
        assert found[L].loss == pytest.approx(problem.loss(found[L].network))
        assert found[L].loss <= found[L].best_start <= problem.loss(polished(start, problem))
    for shallow, deep in ((3, 4), (4, 5)):
        k = int((svdvals(found[shallow].network.weights[shallow // 2 - 1]) > 1e-3).sum())
        assert found[deep].loss <= found[shallow].loss + RIDGE * k + 1e-6


def test_a_network_that_has_diverged_is_no_start_and_no_failure(problem):
    starts = {L: network(L) for L in (3, 4)}
    starts[4].weights[0].fill_(float("nan"))
    found = minima(each_once(starts), starts, problem)
    assert found[4].loss < 1 and found[3].loss < 1  # found from its neighbour
    assert found[4].independent == (inf,)
    for value in (float("nan"), 1e19, float("inf")):
        starts[3].weights[0].fill_(value)
        assert polished(starts[3], problem) is starts[3]
    found = minima(each_once(starts), starts, problem)
    assert all(isnan(problem.loss(best.network)) for best in found.values())


def test_sweeps_are_repeated_until_no_neighbour_helps(problem, monkeypatch):
    """Where every gain counts, each depth has been tried from the final network of the other."""
    monkeypatch.setattr(engine, "SWEEPS", 100)
    monkeypatch.setattr(engine, "SETTLED", 0.0)
    starts = {L: network(L) for L in (3, 4)}
    found = minima(each_once(starts), starts, problem)
    for here, there, change in ((4, 3, shortened), (3, 4, lengthened)):
        neighbour = polished(change(found[here].network, problem), problem)
        assert problem.loss(neighbour) >= found[there].loss


def test_the_second_best_and_the_starts_say_how_far_a_minimum_can_be_trusted(problem):
    """Of three starts of one depth: the spread is between the best two, and all are kept."""
    starts = [network(3), network(3, width=4), network(3, width=2)]
    found = minima({3: starts}, [3], problem)[3]
    ends = [problem.loss(polished(start, problem)) for start in starts]
    assert found.independent == pytest.approx(tuple(ends))
    best, second, _ = sorted(ends)
    assert found.loss == found.best_start == pytest.approx(best)
    assert found.spread == pytest.approx(second / best - 1)
    assert isnan(minima({3: starts[:1]}, [3], problem)[3].spread)


def test_polishing_ends_after_two_restarts_that_gain_nothing(problem, monkeypatch):
    """Not before: the gain of each of the last two is below GAIN, that of one earlier is not."""
    losses = [problem.loss(network())]

    def descended(network, problem, dtype):
        found = _descended(network, problem, dtype)
        losses.append(problem.loss(found))
        return found

    monkeypatch.setattr(engine, "_descended", descended)
    polished(network(), problem, restarts=400)
    gains = -np.diff(losses) / losses[:-1]
    assert (gains[-2:] < engine.GAIN).all()
    idle = gains < engine.GAIN
    assert len(gains) < 400 and not (idle[:-1] & idle[1:])[:-1].any()


DESCENT = """
import numba
numba.config.reload_config()  # the folder of the cache
import numpy as np
from runner.papers.bottleneck_structure.descent import descend
normal = np.random.default_rng(0).normal
theta, x, y = 0.4 * normal(size=282), normal(size=(5, 50)), normal(size=(3, 50))
x[-1] = 1
print(descend(theta, np.array([4, 10, 9, 10, 3]), x, y, 1e-3, 1e-4), theta.tobytes().hex())
"""


@pytest.mark.long
def test_code_from_the_cache_computes_the_bytes_of_code_just_compiled(tmp_path):
    (tmp_path / "descent.py").write_text(DESCENT)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, cached = (
        warm.run(str(tmp_path / "descent.py"), env=environment).stdout for _ in range(2)
    )
    assert list(tmp_path.rglob("*.nbi"))
    assert compiled == cached and compiled
