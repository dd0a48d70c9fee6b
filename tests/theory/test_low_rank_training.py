"""What paper C's invariants say of a linear tail at any finite time: the bounds, and the drift."""

import pytest
import torch

from runner.papers.training_invariances import theory
from runner.papers.training_invariances.low_rank_training import networks
from runner.papers.training_invariances.low_rank_training.study import invariants
from runner.papers.training_invariances.low_rank_training.training import (
    Decayed,
    losses_and_gradients,
)

S, N = 3, 12


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=stream(seed), dtype=torch.float64)


def problem(classes):
    """A stack of S networks of width 6, images and labels, the loss and k."""
    shapes = networks.shapes("mlp", 6, 1, (1, 3, 3), 1 if classes == 2 else classes)
    drawn = [networks.draw(shapes, stream(seed)) for seed in range(S)]
    parameters = {f"W{n + 1}": torch.stack(each) for n, each in enumerate(zip(*drawn, strict=True))}
    x = normal(S, N, 1, 3, 3, seed=7)
    if classes == 2:
        return parameters, x, normal(S, N, seed=8).sign(), "logistic", 1
    labels = torch.randint(classes, (S, N), generator=stream(8))
    return parameters, x, labels, "cross_entropy", classes - 1


def trained(classes, rate, time, optimizer="sgd", decay=0.0):
    """The tail at the start, and after each step of training for this time."""
    parameters, x, y, loss, _ = problem(classes)
    how = Decayed(optimizer, parameters, torch.full((S,), rate), torch.full((S,), decay))
    yield [W.clone() for W in networks.tail(parameters)]
    for _ in range(round(time / rate)):
        how.step(losses_and_gradients(parameters, x, y, loss)[1])
        yield [W.clone() for W in networks.tail(parameters)]


@pytest.mark.parametrize("classes", [2, 5])
def test_the_remainder_stays_within_its_bounds_along_gradient_descent(classes):
    """Up to the drift of the invariants, of first order in the rate."""
    way = trained(classes, rate=0.01, time=4.0)
    start, k = next(way), problem(classes)[-1]
    bounds = theory.remainder_bounds(invariants(start), theory.last_remainder_bound(start[-1]), k)
    first = [theory.remainder(W, k) for W in start]
    for tail in way:
        drift = 5 * sum(
            (D - E).norm() for D, E in zip(invariants(start), invariants(tail), strict=True)
        )
        for W, (least, largest) in zip(tail, bounds, strict=True):
            rem = theory.remainder(W, k)
            assert (least - drift <= rem).all() and (rem <= largest + drift + 1e-9).all()
    moved = [(theory.remainder(W, k) - rem).abs().max() for W, rem in zip(tail, first, strict=True)]
    assert float(drift) < 0.5 * float(moved[0])  # the bounds are not met by standing still


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_bounds_hold_for_every_matrix_with_the_same_invariant(k):
    """Not only for those that training finds: any W_{l+1}, and the W_l that D then gives."""
    for seed in range(40):
        W, V = normal(6, 8, seed=seed), 0.5 * normal(6, 6, seed=100 + seed)
        D = theory.matrix_invariant(W, V)
        other = V + normal(6, 6, seed=200 + seed)
        gram = other.mT @ other - D
        values, vectors = torch.linalg.eigh(gram)
        if values[0] < 0:  # no W_l has this
            continue
        last = theory.remainder(other, k)
        (least, largest), _ = theory.remainder_bounds([D], last, k)
        rem = theory.remainder(vectors * values.sqrt(), k)
        assert least - 1e-9 <= rem <= largest + 1e-9


def test_the_bounds_are_reached():
    """Below by W_{l+1} = 0; above where the best projection takes the largest eigenvalues."""
    W = torch.diag(torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64))
    zero = torch.zeros(1, 3, dtype=torch.float64)
    D = theory.matrix_invariant(W, zero)
    (least, largest), last = theory.remainder_bounds([D], torch.tensor(0.0).double(), 1)
    assert float(least) == 4 + 1 == float(theory.remainder(W, 1))
    assert float(largest) == 9 + 4
    # A row along the smallest eigenvalue, longer than the others: W_l has to grow along it.
    row = torch.tensor([[0.0, 0.0, 10.0]], dtype=torch.float64)
    grown = torch.linalg.cholesky(row.mT @ row - D)
    assert float(theory.remainder(grown, 1)) == pytest.approx(13)
    assert [float(each) for each in last] == [0, 0]


def test_the_sum_over_outputs_stays_under_cross_entropy_whatever_the_step():
    for optimizer in ("sgd", "momentum"):
        *_, (*_, start), (*_, end) = list(trained(4, 0.3, 0.6, optimizer))[::2]
        torch.testing.assert_close(start.sum(-2), end.sum(-2))
        assert not torch.allclose(start, end)
        assert (theory.remainder(end, 3) <= theory.last_remainder_bound(start) + 1e-12).all()


def test_one_output_has_no_remainder():
    W = normal(2, 1, 5)
    assert (theory.last_remainder_bound(W) == 0).all() and (theory.remainder(W, 1) == 0).all()


def drift(rate, optimizer="sgd", time=1.0):
    way = trained(2, rate, time, optimizer)
    start = next(way)
    *_, end = way
    moved = [(D - E).norm() for D, E in zip(invariants(start), invariants(end), strict=True)]
    return torch.stack(moved)


def test_the_drift_is_of_first_order_under_gradient_descent_and_of_none_under_adam():
    for optimizer, rate, time, expected in (
        ("sgd", 0.02, 1.0, 1),
        ("momentum", 0.02, 2.0, 1),
        ("adam", 0.002, 0.4, 0),
    ):
        order = torch.log2(drift(rate, optimizer, time) / drift(rate / 2, optimizer, time))
        assert ((order - expected).abs() < 0.2).all(), optimizer


def test_weight_decay_takes_invariants_and_remainder_away():
    rate, decay, time = 0.01, 0.5, 2.0
    way = trained(2, rate, time, decay=decay)
    start = next(way)
    *_, end = way
    fallen = torch.tensor(-2 * decay * time).exp()
    for D, E in zip(invariants(start), invariants(end), strict=True):
        torch.testing.assert_close(E, fallen * D, rtol=0, atol=0.02 * float(D.abs().max()))
    bounds = theory.remainder_bounds(invariants(start), theory.last_remainder_bound(start[-1]), 1)
    for W, (least, largest) in zip(end, bounds, strict=True):
        rem = theory.remainder(W, 1)
        assert (0.99 * fallen * least <= rem).all() and (rem <= 1.01 * fallen * largest).all()


def test_a_matrix_that_is_not_finite_has_no_remainder():
    W = normal(2, 4, 4)
    W[1, 0, 0] = torch.inf
    assert theory.remainder(W, 1).isnan().tolist() == [False, True]
