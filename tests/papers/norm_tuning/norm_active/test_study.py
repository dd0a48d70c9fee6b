"""Study `norm_active`: against autograd and torch's Adam, and what the arms have in common."""

import pytest
import torch
from in_memory import context, rows_of, tables_of

from runner.papers.norm_tuning.bn_only.networks import f
from runner.papers.norm_tuning.norm_active.config import OF_SCALES, NormActive
from runner.papers.norm_tuning.norm_active.networks import Frozen, Linear
from runner.papers.norm_tuning.norm_active.study import begin, draw
from runner.papers.norm_tuning.theorem_1 import khatri_rao, set_shifts

SMALL = {"target_width": 3, "replicates": 3, "selection_replicates": 2, "steps": 30}
SMALL |= {"test_samples": 500, "batch_size": 16}


def problem(config):
    return draw(config, range(config.replicates), context())


def matrices(R, d, m, seed=0):
    stream = torch.Generator().manual_seed(seed)
    shapes = ((R, m, d), (R, d, m), (R, d, 20), (R, 20))
    return [torch.randn(*shape, generator=stream, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize("kind", ["frozen", "linear", "dense"])
def test_gradients_are_those_of_autograd(kind):
    W1, W2, x, y = matrices(2, 3, 10)
    network = {
        "frozen": lambda: Frozen(W1, W2, 0.3, 4),
        "linear": lambda: Linear(W1[..., 0], khatri_rao(W2, W1).mT, 3, 4),
        "dense": lambda: Linear(W1[:, :3].flatten(1), None, 3, 4),
    }[kind]()
    for i, (name, p) in enumerate(network.parameters.items()):
        stream = torch.Generator().manual_seed(i)
        moved = p.double() + 0.1 * torch.randn(p.shape, generator=stream, dtype=torch.float64)
        network.parameters[name] = moved.requires_grad_()
    outputs, _, _ = network.outputs(x)
    (outputs - y[:, None]).square().mean(-1).sum().backward()
    with torch.no_grad():
        gradients = network.gradients(x, y)
    for name, p in network.parameters.items():
        assert torch.allclose(gradients[name], p.grad, atol=1e-12), name
        assert gradients[name].shape == p.shape and gradients[name].abs().max() > 0


def test_with_active_relus_the_frozen_network_is_linear_in_gamma():
    """The shifts of Lemma 7, and those of `from_active`: the same function, up to rounding."""
    config = NormActive(**SMALL, ratio=2)
    drawn = problem(config)
    W1, W2 = drawn.W1, drawn.W2
    x = torch.randn(3, 3, 50, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = f(
        W1 @ x, W2, set_shifts(W1, W2, torch.ones_like(W1[..., :1]), float(x.norm(dim=1).max()))
    )
    for arm in (*OF_SCALES, "rotated_weights", "from_active"):
        network, _ = begin(config, drawn, arm, 2)
        outputs, _, hidden = network.outputs(x)
        assert torch.allclose(outputs, expected[:, None].expand(-1, 2, -1), atol=1e-4), arm
        assert hidden is None or (hidden > 0).all()
    assert not torch.allclose(begin(config, drawn, "from_zero", 1)[0].outputs(x)[0][:, 0], expected)


def test_axes_keep_or_change_the_condition_number():
    config = NormActive(**SMALL)
    drawn = problem(config)
    numbers = {arm: begin(config, drawn, arm, 1)[1] for arm in (*OF_SCALES, "rotated_weights")}
    K = khatri_rao(drawn.W2, drawn.W1)
    for arm in OF_SCALES:
        assert torch.allclose(numbers[arm], torch.linalg.cond(K)), arm
    assert torch.allclose(numbers["rotated_weights"], torch.ones(3, dtype=torch.float64))
    of_p = begin(config, drawn, "singular_scales", 1)[0].to_weights[torch.float64]
    products = of_p @ of_p.mT
    assert torch.allclose(products, torch.diag_embed(products.diagonal(dim1=1, dim2=2)), atol=1e-9)


def test_a_dense_network_is_trained_as_by_torch():
    config = NormActive(**SMALL, arms=["dense"], learning_rates=[0.05], shift_rates=[0.02])
    drawn, found = problem(config), tables_of(config)["networks"]["relative_mse"]
    for r in range(config.replicates):
        W = drawn.dense[r].float().requires_grad_()
        b = torch.zeros(3, 1, requires_grad=True)
        groups = [{"params": [W], "lr": 0.05}, {"params": [b], "lr": 0.02}]
        adam = torch.optim.Adam(groups)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, config.steps)
        inputs = config.stream(r, "train")
        for _ in range(config.steps):
            x = torch.empty(16, 3).normal_(generator=inputs).mT
            y = torch.relu(drawn.target[r].float() @ x).sum(0)
            adam.zero_grad()
            (torch.relu(W @ x + b).sum(0) - y).square().mean().backward()
            adam.step()
            cosine.step()
        x = torch.empty(500, 3).normal_(generator=config.stream(r, "test")).double().mT
        y = torch.relu(drawn.target[r] @ x).sum(0)
        error = (torch.relu(W.double() @ x + b).sum(0) - y).square().mean() / y.var(correction=0)
        assert found[r] == pytest.approx(float(error), rel=1e-3)


def test_other_replicates_choose_the_rates_and_judged_networks_have_no_others():
    config = NormActive(**SMALL, arms=["from_active", "from_zero"], learning_rates=[1e-6, 0.05],
                        shift_rates=[1e-6, 1e-3])  # fmt: skip
    rows = tables_of(config)["networks"]
    tried = rows[~rows["judged"]]
    assert set(tried["replicate"]) == {3, 4} and len(tried) == 2 * 2 * 4
    judged = rows[rows["judged"]]
    assert set(judged["replicate"]) == {0, 1, 2}
    rates = ["learning_rate", "shift_rate"]
    for (arm, by), part in judged.groupby(["arm", "chosen_by"]):
        medians = tried[tried["arm"] == by].groupby(rates)["relative_mse"].median()
        assert set(part[rates].itertuples(index=False, name=None)) == {medians.idxmin()}, arm
    assert {*judged["chosen_by"][judged["arm"] == "from_zero"]} == {"from_active", "from_zero"}


def test_a_replicate_alone_has_the_same_numbers():
    two, one = (NormActive(**{**SMALL, "replicates": n}, learning_rates=[0.1]) for n in (2, 1))
    assert rows_of(one)[0].relative_mse == pytest.approx(rows_of(two)[0].relative_mse, rel=1e-3)
