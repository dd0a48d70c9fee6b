"""What study `small_copies` measures, and how it trains."""

import math

import pytest
import torch
from in_memory import rows_of, tables_of

from runner.core.errors import InputError
from runner.papers.training_invariances.small_copies import quantities
from runner.papers.training_invariances.small_copies.config import SmallCopies
from runner.papers.training_invariances.small_copies.study import effective_rank, fit, ratio

SMALL = {"samples": 40, "width": 8, "channels": 2, "depths": [2, 3], "replicates": 2}


def test_the_effective_rank_counts_equal_singular_values():
    directions = torch.linalg.qr(torch.randn(9, 9, dtype=torch.float64))[0]
    for rank in (1, 4, 9):
        assert effective_rank(3.0 * directions[:, :rank]) == pytest.approx(rank)
    unequal = effective_rank(directions[:, :2] * torch.tensor([3.0**0.5, 1.0]))
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert unequal == pytest.approx(math.exp(entropy))
    assert effective_rank(torch.zeros(4, 3)) == 0
    assert math.isnan(effective_rank(torch.full((4, 3), torch.nan)))


def test_the_ratio_is_one_at_rank_one_and_a_half_at_two_equal_singular_values():
    assert ratio(torch.outer(torch.randn(5), torch.randn(3))) == pytest.approx(1)
    assert ratio(torch.diag(torch.tensor([2.0, 2.0, 0.0]))) == pytest.approx(0.5)
    assert math.isnan(ratio(torch.full((2, 2), torch.inf)))


def test_training_is_gradient_descent_with_momentum_on_all_images():
    torch.manual_seed(0)
    x, y = torch.randn(7, 3), torch.randn(7, 2)
    network = torch.nn.Linear(3, 2, bias=False)
    W, velocity = network.weight.detach().clone(), torch.zeros(2, 3)
    for _ in range(3):
        velocity = 0.9 * velocity + 2 / 14 * (x @ W.T - y).T @ x
        W -= 0.1 * velocity
    fit(network, x, lambda f: torch.nn.functional.mse_loss(f, y), 0.1, 3)
    torch.testing.assert_close(network.weight.detach(), W)


def test_networks_before_training_do_not_depend_on_its_length_and_learn_in_it():
    short, long = (tables_of(SmallCopies(steps=steps, **SMALL)) for steps in (1, 60))
    for name in ("layers", "features"):
        one, other = (tables[name].query("not trained") for tables in (short, long))
        assert one.equals(other) and len(one) == len(long[name]) / 2
    loss = long["features"].groupby("trained")["loss"].mean()
    accuracy = long["layers"].groupby("trained")["accuracy"].mean()
    assert loss[True] < 0.5 * loss[False] and accuracy[True] > accuracy[False]
    assert list(long["layers"]["layer"].unique()) == [1, 2, 3]


def test_too_many_images_are_refused():
    with pytest.raises(InputError, match="samples=2000: digits has 1536 training images"):
        rows_of(SmallCopies(**SMALL | {"samples": 2000}))


def test_the_claims_compare_ranks_at_every_depth():
    features = tables_of(SmallCopies(steps=1, **SMALL))["features"]
    features["effective_rank"] = 10.0 / features["depth"] + features["trained"]
    tables = {"features": features}
    assert (quantities.raised_by_training().measure(tables)["value"] > 1).all()
    assert (quantities.kept_by_depth().measure(tables)["value"] < 1).all()
    lower = (features["depth"] == 3) & features["trained"]
    features.loc[lower, "effective_rank"] = 1.0
    assert (quantities.raised_by_training().measure(tables)["value"] < 1).all()
