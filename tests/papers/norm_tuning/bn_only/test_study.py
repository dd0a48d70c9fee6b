"""Study `bn_only`: written-out gradients, Theorem 1, and what a run says."""

from dataclasses import asdict

import pandas as pd
import pytest
import torch
from torch import nn

from runner.core.progress import Progress
from runner.core.studies import Context
from runner.papers.norm_tuning.bn_only import networks, study, tables
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.norm_tuning.bn_only.networks import Batch, Dense, FrozenWithNorm, f, g

R, D, M, N = 3, 4, 12, 40
SMALL = {
    "target_width": 4,
    "replicates": 3,
    "train_samples": 400,
    "test_samples": 50,
    "batch_size": 20,
}


def draw(*shape):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64
    )


def rows(**changes):
    context = Context(torch.device("cpu"), None, Progress, lambda state: None, print)
    found = study.run(BnOnly(**{**SMALL, **changes}), context)
    return pd.DataFrame([asdict(row) for row in found if isinstance(row, study.Metrics)])


class Straightforward(nn.Module):
    """f as the paper writes it: frozen layers and torch's own BatchNorm."""

    def __init__(self, W1, W2):
        super().__init__()
        self.W1, self.W2 = W1, W2
        self.first = nn.BatchNorm1d(len(W1), dtype=torch.float64)
        self.second = nn.BatchNorm1d(len(W2), dtype=torch.float64)
        nn.init.constant_(self.second.bias, networks.SHIFT_START)

    def forward(self, x):
        hidden = self.first(x @ self.W1.T).relu()
        return self.second(hidden @ self.W2.T).relu().sum(1)


def test_training_equals_that_of_torchs_batch_norm():
    W1, W2, target, rate = draw(R, M, D), draw(R, D, M), draw(R, D, D), 0.05
    learner = FrozenWithNorm(W2, batch_statistics=True)
    modules = [Straightforward(*pair) for pair in zip(W1, W2, strict=True)]
    for step in range(5):
        x = draw(R, D, N + step) + 0.3
        y = g(x, target)
        losses, gradients, _ = learner.step(Batch(x, y, W1))
        for r, module in enumerate(modules):
            loss = (module(x[r].T) - y[r]).square().mean()
            torch.testing.assert_close(losses[r], loss.detach())
            module.zero_grad()
            loss.backward()
            for p in module.parameters():
                p.data -= rate * p.grad
        for name, gradient in gradients.items():
            learner.parameters[name] -= rate * gradient
    for r, module in enumerate(modules):
        torch.testing.assert_close(learner.parameters["gamma1"][r, :, 0], module.first.weight.data)
        torch.testing.assert_close(learner.parameters["beta2"][r, :, 0], module.second.bias.data)


@pytest.mark.parametrize("batch_statistics", [True, False])
def test_gradients_are_those_of_autograd(batch_statistics):
    W1, W2, x, y = draw(R, M, D), draw(R, D, M), draw(R, D, N), draw(R, N)
    learner = FrozenWithNorm(W2, batch_statistics)
    _, found, _ = learner.step(Batch(x, y, W1))
    step = 1e-6
    for name, parameter in learner.parameters.items():
        direction = torch.ones_like(parameter)
        parameter += step * direction
        above, *_ = learner.step(Batch(x, y, W1))
        parameter -= 2 * step * direction
        below, *_ = learner.step(Batch(x, y, W1))
        parameter += step * direction
        slope = (above - below) / (2 * step)
        torch.testing.assert_close(slope, found[name].sum((1, 2)), rtol=1e-5, atol=1e-6)


def test_proposition_1():
    W1, W2, x = draw(R, M, D), draw(R, D, M), draw(R, D, N)
    learner = FrozenWithNorm(W2, batch_statistics=True)
    for _ in range(300):  # the running statistics become those of this batch
        losses, *_ = learner.step(Batch(x, torch.zeros(R, N), W1))
    output = f(W1 @ x, W2, learner.found())
    torch.testing.assert_close(output.square().mean(-1), losses)


def test_dense_gradient():
    W, x, y = draw(R, D, D), draw(R, D, N), draw(R, N)
    expected = W.clone().requires_grad_()
    (g(x, expected) - y).square().mean(-1).sum().backward()
    _, found, _ = Dense(W).step(Batch(x, y, W))
    torch.testing.assert_close(found["W"], expected.grad)


def test_theorem_1_and_what_has_diverged():
    d = 5
    W1, W2, W, x = draw(R, d * d, d), draw(R, d, d * d), draw(R, d, d), draw(R, d, N)
    lost = W.clone()
    lost[1, 0, 0] = torch.inf
    solved = networks.construct(W1, W2, [W, lost], float(x.norm(dim=1).max()))
    assert solved.rank.tolist() == [d * d] * R
    error = [(f(W1 @ x, W2, norm) - g(x, W)).abs().amax(-1) for norm in solved.norms]
    assert (error[0] < 1e-9).all()
    assert error[1].isnan().tolist() == [False, True, False]


def test_right_means():
    W1, W2, W = draw(R, 6, D), draw(R, D, 6), draw(R, D, D)
    (norm,) = networks.construct(W1, W2, [W], 12.0).norms
    norm = networks.with_right_means(norm, W1, W2, W)
    x = torch.randn(R, D, 200_000, generator=torch.Generator().manual_seed(1)).double()
    torch.testing.assert_close(f(W1 @ x, W2, norm).mean(-1), g(x, W).mean(-1), rtol=0.02, atol=0)


def test_a_replicate_and_a_width_alone_give_the_same_numbers():
    together = rows(widths=[8, 16]).query("replicate == 0 and width == 16")
    alone = rows(widths=[16], replicates=1)
    pd.testing.assert_frame_equal(together.reset_index(drop=True), alone, rtol=1e-4)


def test_runs_of_other_kinds_share_what_they_do_not_change():
    paper, ours = rows(), rows(methods=["dense"], statistics="fixed")
    dense = paper[paper["method"] == "dense"]["test_mse"]
    assert dense.tolist() == pytest.approx(ours["test_mse"].tolist())
    both = tables.with_series(pd.concat([paper, rows(optimizer="adam", learning_rate=0.1)]))
    assert {"sgd", "adam", "dense", "dense by adam"} <= set(both["series"])
