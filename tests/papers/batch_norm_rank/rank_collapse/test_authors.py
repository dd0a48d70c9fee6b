"""`protocol=authors` of figure 1, against torch and against a loop over single networks."""

import dataclasses

import pytest
import torch
from bench.growth import embedded
from in_memory import context, rows_of
from torch import nn

from runner.papers.batch_norm_rank.rank_collapse import authors, study
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse

CONFIG = RankCollapse(
    protocol="authors", depth=3, width=12, samples=40, epochs=2, replicates=2, batch_size=32
)


def trainer(normalization, config=CONFIG):
    return authors.Trainer(normalization, embedded("digits", 0, None), config, context())


def alone(parameters, r):
    """Network r as tensors of its own."""
    return {
        name: tensor[r].detach().clone().requires_grad_() for name, tensor in parameters.items()
    }


def forward(p, x, depth, normalized):
    """A single network with samples as rows, as torch writes it."""
    for layer in range(1, depth + 1):
        x = nn.functional.linear(x, p[f"W{layer}"], p.get(f"b{layer}"))
        if normalized:
            x = (x - x.mean(0)) / x.std(0)
        x = torch.relu(x)
    return nn.functional.linear(x, p[f"W{depth + 1}"], p.get(f"b{depth + 1}"))


@pytest.mark.parametrize("written_out", [True, False])
@pytest.mark.parametrize("normalization, optimizer", [("none", "SGD"), ("batch", "Adam")])
def test_three_steps_are_those_of_torch(normalization, optimizer, written_out, monkeypatch):
    monkeypatch.setattr(authors, "is_written_out_for", lambda network: written_out)
    ours = trainer(normalization)
    assert any(name.startswith("b") for name in ours.networks.parameters) == (optimizer == "SGD")
    singles = [alone(ours.networks.parameters, r) for r in range(2)]
    steps = [getattr(torch.optim, optimizer)(p.values(), lr=0.01) for p in singles]
    images, labels = ours.data.train.flat().float(), ours.data.train.labels
    order = ours.order()
    for step in range(3):
        chosen = order[:, 32 * step : 32 * (step + 1)]
        losses = ours.train_on(chosen)
        for r, (p, of) in enumerate(zip(singles, steps, strict=True)):
            logits = forward(p, images[chosen[r]], 3, normalization == "batch")
            loss = nn.functional.cross_entropy(logits, labels[chosen[r]])
            of.zero_grad()
            loss.backward()
            of.step()
            assert losses[r].item() == pytest.approx(loss.item(), rel=1e-4)
    for r, p in enumerate(singles):
        for name, tensor in p.items():
            mine = ours.networks.parameters[name][r].detach()
            torch.testing.assert_close(mine, tensor.detach(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "depth, rate", [(1, 0.01), (8, 0.01), (9, 0.05), (22, 0.05), (23, 0.005), (31, 0.0005)]
)
def test_rates_change_where_those_of_the_script_do(depth, rate):
    """Its argument is the number of hidden layers less one: 8, 22 and 30."""
    config = dataclasses.replace(CONFIG, depth=depth, width=2)
    for normalization, expected in (("batch", rate), ("none", 0.01)):
        assert trainer(normalization, config).rate == expected


def test_minibatches_are_drawn_with_replacement_and_ranks_are_of_the_first():
    ours = trainer("none")
    order = ours.order()
    assert all(len(of.unique()) < len(of) for of in order)
    first = ours.first_minibatch()
    torch.testing.assert_close(first, ours.data.train.flat()[order[:, :32]].float())
    assert first.min() >= 0 and first.max() <= 1


def test_it_goes_on_where_it_was_interrupted():
    states = []
    whole = rows_of(
        CONFIG, checkpoint=lambda make: states.append({k: v.clone() for k, v in make().items()})
    )
    middle = len(states) * 3 // 4  # in the second normalization
    rest = rows_of(CONFIG, restored=states[middle])
    assert rest and whole[-len(rest) :] == rest
    assert {row.normalization for row in rest} == {"batch"}


FIGURE_2 = RankCollapse(
    protocol="authors", data="gaussian", train=False, dtype="float64", width=6, samples=6,
    depth=80, replicates=2, activation="linear",
)  # fmt: skip


def test_layers_of_figure_2_without_batch_norm_are_a_product_of_the_same_weights():
    streams = [torch.Generator().manual_seed(r) for r in range(2)]
    again = [torch.Generator().manual_seed(r) for r in range(2)]
    x = torch.randn(2, 6, 6, dtype=torch.float64)
    layers = authors.layers_of_figure_2(x, "linear", streams)
    found = [next(layers) for _ in range(3)]
    for r, stream in enumerate(again):
        Ws = [torch.empty(6, 6, dtype=torch.float64) for _ in range(3)]
        for W in Ws:
            W.uniform_(-(3**0.5), 3**0.5, generator=stream)
        product = torch.linalg.multi_dot([*Ws[::-1], x[r]])
        torch.testing.assert_close(found[-1]["none"][r], product / product.norm())
        first = nn.functional.batch_norm((Ws[0] @ x[r]).mT, None, None, training=True, eps=1e-30)
        torch.testing.assert_close(found[0]["batch"][r], first.mT)


def test_figure_2_gives_ranks_of_both_networks_before_and_after_the_activation():
    config = dataclasses.replace(FIGURE_2, activation="tanh")
    rows = rows_of(config)
    last = [row for row in rows if row.layer == 80]
    assert len(rows) == 2 * 2 * (64 + 6) and len(last) == 4
    for row in last:
        small = row.normalization == "none"
        assert (row.rank_bound < 1.1) == small
        assert row.root_mean_square == pytest.approx(1 / 6) if small else row.root_mean_square < 1


def test_ranks_by_layer_are_told_before_training_begins(caplog):
    config = RankCollapse(depth=9, width=12, samples=40, epochs=1, replicates=1)
    with caplog.at_level("INFO", "runner.run"):
        rows = study.run(config, context())
        next(row for row in rows if row.table != "metrics")
    told = [record.message for record in caplog.records if "by layer" in record.message]
    assert len(told) == 1 and told[0].split()[-5:] == ["1", "2", "4", "8", "9"]
