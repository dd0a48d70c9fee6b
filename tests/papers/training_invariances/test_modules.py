"""Invariants of torch modules: found without the graph, equal to those of the theory."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from in_memory import tables_of
from torch import nn

from runner.networks.resnet import ResNetForCifar
from runner.papers.training_invariances.modules import (
    TOLERANCE,
    few_terms,
    find_invariants,
    invariants_table,
)
from runner.papers.training_invariances.practical_layers.config import PracticalLayers
from runner.papers.training_invariances.practical_layers.networks import NETWORKS, Residual
from runner.papers.training_invariances.practical_layers.study import parts
from runner.papers.training_invariances.practical_layers.tables import CONTROLS, SHOWN, shown
from runner.papers.training_invariances.theory import matrix_invariant


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(3)


def found(module, x):
    return {str(quantity): quantity for quantity in find_invariants(module, x)}


def images(*shape):
    return torch.rand(20, *shape)


def test_of_linear_layers_it_is_the_matrix_of_theorem_1():
    net = nn.Sequential(nn.Linear(5, 4, bias=False), nn.Linear(4, 3, bias=False))
    before = deepcopy(net.state_dict())
    (D,) = find_invariants(net, images(5))
    assert D.conserved == "all of D" and D.entries == 16 and D.rate_of_all < TOLERANCE
    expected = matrix_invariant(net[0].weight.detach(), net[1].weight.detach())
    torch.testing.assert_close(D.matrix(net), expected)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_of_relu_layers_it_has_the_pairs_of_equal_pattern():
    net = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    with torch.no_grad():
        net[0].bias[:2] += 9.0  # two neurons that are always active
    (D,) = find_invariants(net, torch.randn(20, 5))
    assert str(D) == "columns of 2.weight − rows of 0.weight − rows of 0.bias"
    assert D.entries == 4 + 2 and D.conserved == "diagonal of D, some pairs"


def test_a_short_step_changes_an_invariant_by_its_square_and_a_control_in_proportion():
    x, net = images(1, 8, 8).double(), NETWORKS["gated"](4).double()

    def change(quantity, h):
        copy = deepcopy(net)
        copy(x).square().mean().backward()
        with torch.no_grad():
            for p in copy.parameters():
                p -= h * p.grad
        return float((quantity.matrix(copy) - quantity.matrix(net)).diagonal().norm())

    value, gate = find_invariants(net, x)
    assert "part 1" in str(value) and value.conserved == "diagonal of D"
    assert "part 2" in str(gate) and gate.conserved == "nothing"
    assert change(value, 1e-3) / change(value, 5e-4) == pytest.approx(4, rel=0.01)
    assert change(gate, 1e-3) / change(gate, 5e-4) == pytest.approx(2, rel=0.01)


def test_batch_norm_keeps_the_norm_of_the_rows_before_it_only_in_training_mode():
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)
    )
    in_training = found(net, images(1, 8, 8))
    assert in_training["rows of 0.weight"].conserved == "diagonal of D"
    after = "columns of 4.weight (4 channels) − rows of 1.weight − rows of 1.bias"
    assert in_training[after].conserved == "diagonal of D"
    in_evaluation = found(net.eval(), images(1, 8, 8))
    assert "rows of 0.weight" not in in_evaluation
    assert "rows of 0.weight + rows of 0.bias − rows of 1.weight" in in_evaluation  # mean zero


def in_evaluation():
    layers = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3)
    return nn.Sequential(*layers).eval()


@pytest.mark.parametrize(
    "module, expected",
    [
        (
            in_evaluation,
            {
                "rows of 0.weight + rows of 0.bias − rows of 1.weight",
                "rows of 1.weight + rows of 1.bias − rows of 2.weight",
                "columns of 4.weight − rows of 2.weight − rows of 2.bias",
            },
        ),
        (
            lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU(), Squares(), nn.Linear(3, 2)),
            {"2 × columns of 3.weight − rows of 0.weight − rows of 0.bias"},
        ),
    ],
    ids=["batch norm twice", "squares"],
)
def test_the_quantities_of_a_module_are_the_same_for_40_seeds(module, expected):
    """Their coefficients are exact, whatever the rounding, and no implied norm is among them."""
    for seed in range(40):
        torch.manual_seed(seed)
        quantities = find_invariants(module(), torch.randn(20, 4), seed=seed)
        assert {str(q) for q in quantities if q.conserved != "nothing"} == expected
        assert all(a == round(a) for q in quantities for a in q.terms.values())


class Squares(nn.Module):
    def forward(self, x):
        return x.square()


@pytest.mark.parametrize("seed", range(40))
def test_a_basis_is_that_of_its_space_whatever_spans_it(seed):
    """Two ways to span a space, with rounding, give the same vectors with few coefficients."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, 25)), int(rng.integers(1, 4))
    sparse = np.where(rng.random((k, n)) < 0.3, rng.choice([-2, -1, 1, 2], (k, n)), 0.0)
    sparse[:, :k] = np.eye(k)  # independent
    sparse = sparse[:, rng.permutation(n)]

    def basis():
        rounded = sparse.T * (1 + 1e-14 * rng.normal(size=(n, k)))
        return np.array(few_terms(rounded @ rng.normal(size=(k, k))))

    one, other = basis(), basis()
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert np.linalg.matrix_rank(np.vstack([sparse, one])) == k == np.linalg.matrix_rank(one)
    assert np.count_nonzero(one) <= np.count_nonzero(sparse)


def test_heads_of_attention_have_a_block_each():
    transformer = NETWORKS["transformer"](6)
    blocks = [q for q in found(transformer, images(1, 8, 8)).values() if q.entries == 2 * 3**2]
    assert len(blocks) == 2  # queries and keys, values and outputs


def test_of_attention_the_whole_matrix_of_a_head_is_conserved_and_two_heads_are_not():
    network = NETWORKS["transformer"](6)
    conserved = 0
    for quantity in find_invariants(network, images(1, 8, 8)):
        masks = parts(network, quantity)
        assert ("heads" in masks) == all("self_attn" in side for side in quantity.terms)
        if "heads" in masks and quantity.rate < TOLERANCE:
            conserved += 1
            assert masks["heads"].sum() == 2 * 3**2 and masks["diagonal"].sum() == 6
            assert quantity.rate_of(masks["heads"]) < TOLERANCE
            assert quantity.rate_of(masks["all"]) == quantity.rate_of_all > 1e-3
    assert conserved == 2


def test_identity_skips_keep_the_sum_over_all_layers_at_the_stream():
    """The paper has no invariant next to an identity skip; the whole stream has one."""
    blocks = (Residual(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4)) for _ in range(2))
    net = nn.Sequential(nn.Linear(5, 4), *blocks, nn.Linear(4, 2))
    stream = next(q for q in find_invariants(net, images(5)) if len(q.terms) > 3)
    assert stream.conserved == "all of D"
    signs = {side.split()[0]: a for side, a in stream.terms.items()}
    assert signs == pytest.approx({"columns": 1, "rows": -1}) and len(stream.terms) == 9


def test_a_norm_is_listed_if_no_matrix_gives_it():
    """In a residual network with batch norm all norms at the stream have one sum."""
    last = [
        q for q in find_invariants(ResNetForCifar(1, 3, 1, 2), images(1, 8, 8)) if q.neurons == 1
    ]
    (norm,) = last
    assert norm.rate < TOLERANCE and "norm of classifier.weight" in norm.terms


def test_frozen_parameters_are_left_out():
    net = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    net[0].bias.requires_grad_(False)
    table = invariants_table(net, images(5))
    assert not table["quantity"].str.contains("bias").any()
    assert list(table["conserved"]) == ["nothing"]  # a neuron with a frozen weight


def test_the_study_measures_all_quantities_that_are_shown():
    tables = tables_of(PracticalLayers(replicates=1, samples=20, learning_rates=[0.1], time=0.2))
    rows = shown({"metrics": tables["metrics"].assign(optimizer="sgd", weight_decay=0.0)})
    assert set(rows["label"]) == set(SHOWN)
    moved = rows.groupby("label")["rate"].max() > TOLERANCE
    assert set(moved.index[moved]) == set(CONTROLS)
